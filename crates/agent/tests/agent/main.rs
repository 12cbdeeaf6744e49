//! The native agent: the turn machine, its driver and recipes.

mod driver;
mod recipe;
mod turn;
