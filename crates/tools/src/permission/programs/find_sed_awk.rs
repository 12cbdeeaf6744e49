//! Programs with a language of their own, of which a small part only reads: `find`, `sed`, `awk` and `test`.

use super::super::script::Word;
use super::{ReadCheck, program_option_refused, reject_program_glob};

impl ReadCheck<'_> {
    pub(super) fn check_find(&mut self, words: &[Word]) -> Result<(), String> {
        let is_test = |word: &Word| word.text.starts_with('-') || ["!", "(", ")"].contains(&word.text.as_str());
        let tests = words.iter().position(is_test).unwrap_or(words.len());
        words[..tests].iter().try_for_each(|word| reject_program_glob(word).and_then(|()| self.check_path(word)))?;
        let mut tests = words[tests..].iter();
        while let Some(test) = tests.next() {
            reject_program_glob(test)?;
            match test.text.as_str() {
                flag if FIND_TESTS.contains(&flag) => {}
                valued if FIND_TESTS_WITH_VALUE.contains(&valued) => {
                    reject_program_glob(tests.next().ok_or("an option lacks its value")?)?
                }
                other => return Err(program_option_refused("find", other)),
            }
        }
        Ok(())
    }

    /// One command that prints, deletes or replaces on the way to the output: everything else of it can write or run.
    pub(super) fn check_sed(&mut self, words: &[Word]) -> Result<(), String> {
        let flags =
            words.iter().take_while(|word| ["-n", "-E", "-r", "-nE", "-En", "-nr"].contains(&word.text.as_str()));
        let flags = flags.count();
        let (script, files) = match &words[flags..] {
            [option, script, files @ ..] if option.text == "-e" => (script, files),
            [script, files @ ..] => (script, files),
            [] => return Err("sed without a script".into()),
        };
        if script.glob || !is_harmless_sed_script(&script.text) {
            return Err("sed can write and run: only one command that prints is known to look".into());
        }
        self.check_plain_files("sed", files)
    }

    /// A program without output to files, commands, input of its own choice and access to its own arguments.
    pub(super) fn check_awk(&mut self, words: &[Word]) -> Result<(), String> {
        let mut rest = words;
        loop {
            rest = match rest {
                [option, _, rest @ ..] if option.text == "-F" || option.text == "-v" => rest,
                [option, rest @ ..] if option.text.starts_with("-F") => rest,
                [program, files @ ..] if !program.text.starts_with('-') => {
                    words[..words.len() - files.len()].iter().try_for_each(reject_program_glob)?;
                    if !is_harmless_awk_program(&program.text) {
                        return Err("awk can write and run: this program is not known to only look".into());
                    }
                    return self.check_plain_files("awk", files);
                }
                [option, ..] => return Err(program_option_refused("awk", &option.text)),
                [] => return Err("awk without a program".into()),
            };
        }
    }

    /// bash takes what `-v` names for an element of an array, and carries out the commands in its index.
    pub(super) fn check_test(&mut self, words: &[Word]) -> Result<(), String> {
        if let Some(variable) = words.iter().find(|word| ["-v", "-R"].contains(&word.text.as_str())) {
            return Err(program_option_refused("test", &variable.text));
        }
        words.iter().try_for_each(|word| reject_program_glob(word).and_then(|()| self.check_path(word)))
    }

    /// A format without `%n`, by which bash sets a variable: the path of programs, or what keeps git quiet.
    pub(super) fn check_printf(&mut self, format: &Word, words: &[Word]) -> Result<(), String> {
        if format.text.starts_with('-') || !is_harmless_printf_format(&format.text) {
            return Err(program_option_refused("printf", &format.text));
        }
        std::iter::once(format).chain(words).try_for_each(reject_program_glob)
    }

    fn check_plain_files(&mut self, program: &str, files: &[Word]) -> Result<(), String> {
        files.iter().try_for_each(|file| match file.text.starts_with('-') && file.text != "-" {
            true => Err(program_option_refused(program, &file.text)),
            false => self.check_content(file),
        })
    }
}

/// `10,20p`, `/start/,/end/p`, `$d`, `5q`, `s/old/new/g`.
fn is_harmless_sed_script(script: &str) -> bool {
    if script.contains('\n') {
        return false;
    }
    let mut rest = skip_sed_address(script);
    if let Some(second) = rest.strip_prefix(',') {
        rest = skip_sed_address(second);
        if rest.len() == second.len() {
            return false;
        }
    }
    match rest {
        "p" | "d" | "q" | "=" => true,
        _ => rest.strip_prefix('s').is_some_and(is_harmless_sed_replacement),
    }
}

/// What follows an address; everything if there is none.
fn skip_sed_address(script: &str) -> &str {
    let digits = script.trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.len() < script.len() {
        return digits;
    }
    if let Some(rest) = script.strip_prefix('$') {
        return rest;
    }
    match script.strip_prefix('/').and_then(|pattern| after_sed_delimiter(pattern, '/')) {
        Some(rest) => rest,
        None => script,
    }
}

/// The rest of `s`: among its flags, `w` writes and `e` runs.
fn is_harmless_sed_replacement(rest: &str) -> bool {
    let Some(delimiter) = rest.chars().next().filter(|c| "/|#,:@!".contains(*c)) else { return false };
    let flags = after_sed_delimiter(&rest[1..], delimiter).and_then(|rest| after_sed_delimiter(rest, delimiter));
    flags.is_some_and(|flags| flags.chars().all(|flag| "gpIi".contains(flag) || flag.is_ascii_digit()))
}

/// What follows the next delimiter that no backslash stands before.
fn after_sed_delimiter(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            found if found == delimiter => return Some(&text[at + found.len_utf8()..]),
            _ => {}
        }
    }
    None
}

/// True if every conversion of a format of `printf` only prints.
fn is_harmless_printf_format(format: &str) -> bool {
    let mut pieces = format.split('%').skip(1);
    while let Some(piece) = pieces.next() {
        match piece.trim_start_matches(|c: char| "-+ #'.*hlLjzt".contains(c) || c.is_ascii_digit()).chars().next() {
            Some(kind) if "diouxXfFeEgGaAcsbq".contains(kind) => {}
            // `%%` prints the sign.
            None if piece.is_empty() => drop(pieces.next()),
            Some(_) | None => return false,
        }
    }
    true
}

/// Words by which a program of awk runs something, reads what nobody named, or reaches its own arguments.
const AWK_UNSAFE_WORDS: [&str; 11] =
    ["system", "getline", "close", "fflush", "ARG", "ENVIRON", "SYMTAB", "FUNCTAB", "PROCINFO", "include", "load"];

/// A `>` inside of an action writes a file; before it, it compares.
fn is_harmless_awk_program(program: &str) -> bool {
    let actions = program.split_once('{').map_or("", |(_, actions)| actions);
    !program.contains(['|', '@', '`'])
        && !actions.contains('>')
        && !AWK_UNSAFE_WORDS.iter().any(|word| program.contains(word))
}

/// Tests of `find` without a value.
const FIND_TESTS: &[&str] = &[
    "-print",
    "-print0",
    "-ls",
    "-empty",
    "-not",
    "!",
    "-o",
    "-or",
    "-a",
    "-and",
    "(",
    ")",
    "-prune",
    "-depth",
    "-xdev",
    "-mount",
    "-quit",
    "-true",
    "-false",
    "-readable",
    "-writable",
    "-executable",
    "-daystart",
    "-noleaf",
    "-nouser",
    "-nogroup",
];

/// Tests of `find` with a value that names no file.
const FIND_TESTS_WITH_VALUE: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-maxdepth",
    "-mindepth",
    "-size",
    "-mtime",
    "-mmin",
    "-ctime",
    "-cmin",
    "-atime",
    "-amin",
    "-perm",
    "-user",
    "-group",
    "-links",
    "-inum",
    "-printf",
    "-newermt",
    "-used",
    "-uid",
    "-gid",
];
