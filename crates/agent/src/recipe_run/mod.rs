//! What a run gets from the recipe that its session follows: its goal, `final_output`, and sub-recipes as tools.

mod final_output;
mod sub_recipes;
mod task;

pub use sub_recipes::{ReadFile, SubRecipeEnv, SubRecipeSource, sub_recipe_tools};
