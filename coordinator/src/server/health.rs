//! What gRPC health says: SERVING while decisions are made in a store that is whole, NOT_SERVING otherwise. Looks at the
//! liveness of the coordinator again and again; knows no reasons.

use std::sync::Arc;
use std::time::Duration;

use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::liveness::Liveness;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Keeps the reporter up to date for ever.
pub(super) async fn tell<A: NamedService, B: NamedService>(
    reporter: HealthReporter,
    liveness: Arc<Liveness>,
) {
    let (mut told, mut was_well) = (None, true);
    loop {
        // Twice in a row: a process that was paused as a whole is at work again a moment later.
        let is_well = liveness.is_well();
        let well = is_well || was_well;
        was_well = is_well;
        if told != Some(well) {
            let status = if well { ServingStatus::Serving } else { ServingStatus::NotServing };
            for name in ["", A::NAME, B::NAME] {
                reporter.set_service_status(name, status).await;
            }
            if !well {
                let (busy, (_, damage)) = (liveness.busy(), liveness.store());
                tracing::error!(busy, damage, "not serving: the driver is stuck, or the store is damaged");
            } else if told.is_some() {
                tracing::info!("serving again");
            }
            told = Some(well);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use togl_scheduler::Timestamp;
    use tonic::Request;
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_server::Health;
    use tonic_health::server::HealthService;

    use super::*;
    use crate::clock::{Clock, ManualClock};

    struct One;
    impl NamedService for One {
        const NAME: &'static str = "one";
    }

    async fn until(service: &HealthService, status: ServingStatus) {
        for name in ["", "one"] {
            let request = || Request::new(HealthCheckRequest { service: name.to_owned() });
            while service.check(request()).await.map_or(0, |reply| reply.into_inner().status) != status as i32
            {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_driver_that_is_stuck_and_a_store_that_is_damaged_are_not_serving() {
        let clock = ManualClock::default();
        let liveness = Arc::new(Liveness::new(Arc::new(clock.clone())));
        let reporter = HealthReporter::new();
        let service = HealthService::from_health_reporter(reporter.clone());
        let story = async {
            until(&service, ServingStatus::Serving).await;
            liveness.begin(clock.now());
            clock.advance(56_000); // a session of PostgreSQL that hangs
            until(&service, ServingStatus::NotServing).await;
            liveness.end();
            until(&service, ServingStatus::Serving).await;
            liveness.begin(Timestamp(clock.now().0));
            assert!(liveness.is_well(), "a round that has just begun");
            liveness.checked(1);
            until(&service, ServingStatus::NotServing).await;
        };
        tokio::select! {
            () = tell::<One, One>(reporter, liveness.clone()) => {}
            () = story => {}
            () = tokio::time::sleep(Duration::from_secs(30)) => panic!("health does not say how things are"),
        }
    }
}
