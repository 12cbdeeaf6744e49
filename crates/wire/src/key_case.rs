//! camelCase and `snake_case`, both ways.

/// A name in camelCase.
pub(crate) fn camel_case(name: &str) -> String {
    let mut upper = false;
    let letters = name.chars().filter_map(|letter| match letter {
        '_' => {
            upper = true;
            None
        }
        _ if std::mem::take(&mut upper) => Some(letter.to_ascii_uppercase()),
        _ => Some(letter),
    });
    letters.collect()
}

/// A name in `snake_case`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
