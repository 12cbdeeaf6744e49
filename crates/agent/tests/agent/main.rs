//! The native agent: the turn machine, its driver and recipes.

mod driver;
mod injection;
mod recipe;
mod turn;
