//! Stories about the scheduler, told through a [`world::World`] that checks all invariants and the store
//! after every event. One file a subject; the names of the tests are the requirements.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where, and end")]

mod acceptance;
mod adoption;
mod asked;
mod cost;
mod data;
mod demand;
mod devices;
mod explain;
mod failures;
mod hosts;
mod leases;
mod looking;
mod model;
mod offers;
mod parts;
mod race;
mod random_worlds;
mod restarts;
mod rungs;
mod standstill;
mod steering;
mod sweeps;
mod workers;
mod world;
