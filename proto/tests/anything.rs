//! Anything that a peer can send becomes a value of the domain or a refusal that names the field; never a panic, and
//! never a value that the domain does not allow.

use proptest::prelude::*;
use prost::Message;
use togl_proto::{convert, wire};
use togl_sweeps::result::example;
use togl_sweeps::{CheckedResult, FoldKey, FoldResult};

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        0.0..=1.0,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-0.0),
        Just(1e308),
    ]
}

fn metrics() -> impl Strategy<Value = Option<wire::Metrics>> {
    proptest::option::weighted(
        0.9,
        (number(), number()).prop_map(|(loss, accuracy)| wire::Metrics { loss, accuracy }),
    )
}

fn epoch() -> impl Strategy<Value = wire::Epoch> {
    (any::<u32>(), number(), metrics(), metrics()).prop_map(|(epoch, lr, train, validation)| wire::Epoch {
        epoch,
        lr,
        train,
        validation,
    })
}

/// A good result with some of its parts replaced by anything.
fn result() -> impl Strategy<Value = wire::FoldResult> {
    let parts =
        (metrics(), metrics(), number(), any::<u32>(), proptest::collection::vec(epoch(), 0..4), ".{0,40}");
    (parts, any::<[bool; 6]>()).prop_map(|((test, train, seconds, version, history, digest), replace)| {
        let good: wire::FoldResult = example(0.5).into();
        wire::FoldResult {
            test: if replace[0] { test } else { good.test },
            train: if replace[1] { train } else { good.train },
            seconds: if replace[2] { seconds } else { good.seconds },
            version: if replace[3] { version } else { good.version },
            history: if replace[4] { history } else { good.history.clone() },
            data_digest: if replace[5] { digest } else { good.data_digest.clone() },
            ..good
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn a_result_that_gets_through_can_be_stored_and_read_again(sent in result()) {
        if let Ok(result) = CheckedResult::try_from(sent) {
            prop_assert_eq!(result.check_readable(), Ok(()));
            let text = serde_json::to_string(&result).unwrap();
            let again: CheckedResult = serde_json::from_str(&text).unwrap();
            prop_assert!(again.same_numbers(&result));
        }
    }

    #[test]
    fn garbage_instead_of_a_message_is_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(sent) = wire::FoldResult::decode(&bytes[..]) {
            _ = FoldResult::try_from(sent.clone());
            _ = CheckedResult::try_from(sent);
        }
        if let Ok(sent) = wire::Fold::decode(&bytes[..]) {
            _ = FoldKey::try_from(sent);
        }
    }

    #[test]
    fn a_good_message_with_flipped_bits_is_refused_or_possible(at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = wire::FoldResult::from(example(0.25)).encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(sent) = wire::FoldResult::decode(&bytes[..])
            && let Ok(result) = CheckedResult::try_from(sent)
        {
            prop_assert_eq!(result.check_readable(), Ok(()));
        }
    }

    #[test]
    fn folds_and_attempts_of_any_text_are_read_or_refused(trial in ".{0,60}", split in any::<u32>(), seed in any::<u64>()) {
        if let Ok(fold) = convert::fold(Some(wire::Fold { trial: trial.clone(), split, seed })) {
            prop_assert_eq!(fold.trial.to_string(), trial);
        }
        prop_assert_eq!(convert::attempt(split).is_ok(), split > 0);
    }
}
