//! The programs that only read, and every option that leaves them so.
//!
//! Values of options are texts and figures: an option that takes the name of a file has no place here.

/// A program and everything that may be said to it.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// One-letter options without a value.
    pub(super) flags: &'static str,
    /// One-letter options with a value.
    pub(super) valued: &'static str,
    /// Long options: `--x` alone, `--x=` with a value, `--x?` with or without one.
    pub(super) long: &'static [&'static str],
    pub(super) operands: Operands,
    /// The letter that makes it read everything below a folder; `always` if it does so by itself.
    pub(super) searches_with: &'static str,
    /// True if it follows links while it does so.
    pub(super) follows_links: bool,
    /// True if even the values of its options are looked at as if they named files.
    pub(super) strict_values: bool,
    pub(super) letters: Letters,
}

/// How a program reads a word of several option letters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Letters {
    /// As most do: letters without a value, then one with all that follows, or the next word, as its value.
    Joined,
    /// The value is always the next word, and the letters behind go on being options.
    ValueApart,
    /// Only the first letter counts, but for figures that are its value.
    FirstOnly,
}

/// What the words that are no options mean.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// There are none.
    None,
    /// Words without meaning.
    Text,
    /// Names of files whose content is shown.
    Content,
    /// Names of files of which only names and figures are shown; no option could do harm.
    Names,
    /// A pattern, then names of files whose content is shown.
    Pattern,
    /// At most one name: a second would be written to.
    One,
    /// A format that begins with `+`.
    Format,
    /// Patterns of names to be listed, if it is said that it lists.
    Listed,
}

pub(super) use Operands::{Content, Format, Listed, Names, None as Nothing, One, Pattern, Text};

pub(super) const fn program(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Program {
    Program {
        name,
        flags,
        valued,
        long,
        operands,
        searches_with: "",
        follows_links: false,
        strict_values: false,
        letters: Letters::Joined,
    }
}

impl Program {
    const fn searching(self, searches_with: &'static str) -> Self {
        Self { searches_with, ..self }
    }

    const fn reading_letters(self, letters: Letters) -> Self {
        Self { letters, ..self }
    }

    const fn following(self) -> Self {
        Self { follows_links: true, ..self }
    }
}

#[rustfmt::skip]
pub(super) const PROGRAMS: &[Program] = &[
    program("ls", "1aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ", "wIT", &["--all", "--almost-all", "--human-readable", "--recursive", "--reverse", "--color?", "--sort=", "--time=", "--time-style=", "--full-time", "--group-directories-first", "--classify", "--directory", "--size", "--inode", "--ignore="], Names),
    program("cat", "AbeEnstTuv", "", &["--number", "--number-nonblank", "--show-all", "--show-ends", "--show-tabs", "--squeeze-blank"], Content),
    program("tac", "", "", &[], Content),
    program("nl", "", "bdfhilnsvw", &["--body-numbering=", "--number-format=", "--number-width=", "--number-separator="], Content),
    program("head", "qvz", "nc", &["--lines=", "--bytes=", "--quiet", "--verbose", "--silent", "--zero-terminated"], Content),
    program("tail", "qvz", "nc", &["--lines=", "--bytes=", "--quiet", "--verbose", "--silent", "--zero-terminated"], Content),
    program("wc", "clmwL", "", &["--lines", "--words", "--bytes", "--chars", "--max-line-length", "--total="], Content),
    program("grep", "EFGPivwxcloLHhnsqrabzZTUyI", "eABCm", &["--recursive", "--ignore-case", "--no-ignore-case", "--line-number", "--count", "--files-with-matches", "--files-without-match", "--only-matching", "--word-regexp", "--line-regexp", "--invert-match", "--extended-regexp", "--fixed-strings", "--perl-regexp", "--basic-regexp", "--no-filename", "--with-filename", "--no-messages", "--quiet", "--text", "--color?", "--include=", "--exclude=", "--exclude-dir=", "--context=", "--after-context=", "--before-context=", "--max-count="], Pattern).searching("r"),
    program("egrep", "ivwxclonHhsr", "eABCm", &["--include=", "--exclude=", "--exclude-dir="], Pattern).searching("r"),
    program("fgrep", "ivwxclonHhsr", "eABCm", &["--include=", "--exclude=", "--exclude-dir="], Pattern).searching("r"),
    program("rg", "ivwxclnNHhoFPSsUaq0pu.I", "egtTABCmMjdr", &["--files", "--type=", "--type-not=", "--type-list", "--glob=", "--iglob=", "--ignore-case", "--smart-case", "--case-sensitive", "--word-regexp", "--line-regexp", "--fixed-strings", "--count", "--count-matches", "--files-with-matches", "--files-without-match", "--line-number", "--no-line-number", "--heading", "--no-heading", "--column", "--json", "--stats", "--sort=", "--sortr=", "--context=", "--after-context=", "--before-context=", "--max-count=", "--max-depth=", "--max-columns=", "--multiline", "--only-matching", "--invert-match", "--with-filename", "--no-filename", "--color=", "--trim", "--vimgrep", "--pcre2", "--replace=", "--null", "--regexp=", "--hidden", "--no-hidden", "--no-ignore", "--no-ignore-vcs", "--no-ignore-parent", "--no-config", "--no-messages", "--no-column", "--max-filesize=", "--passthru", "--pretty", "--text", "--threads=", "--crlf", "--null-data", "--quiet", "--one-file-system", "--context-separator=", "--byte-offset"], Pattern).searching("always"),
    program("sort", "bcCdfghiMnrRsuVz", "kt", &["--reverse", "--numeric-sort", "--unique", "--human-numeric-sort", "--version-sort", "--ignore-case", "--stable", "--check?", "--ignore-leading-blanks", "--dictionary-order", "--general-numeric-sort", "--month-sort", "--random-sort", "--zero-terminated", "--debug", "--key=", "--field-separator="], Content),
    program("uniq", "cdDiuz", "fsw", &["--count", "--repeated", "--unique", "--ignore-case", "--skip-fields=", "--skip-chars="], One),
    program("cut", "sz", "dfcb", &["--delimiter=", "--fields=", "--characters=", "--bytes=", "--complement", "--only-delimited", "--output-delimiter="], Content),
    program("tr", "cCdst", "", &["--complement", "--delete", "--squeeze-repeats", "--truncate-set1"], Text),
    program("rev", "", "", &[], Content),
    program("paste", "sz", "d", &[], Content),
    program("fold", "bs", "w", &[], Content),
    program("comm", "123", "", &["--nocheck-order"], Content),
    program("cmp", "bls", "n", &[], Content),
    program("diff", "abBcdeEinNpqrstTuwyZ", "UCWI", &["--unified?", "--context?", "--brief", "--recursive", "--ignore-case", "--ignore-all-space", "--ignore-space-change", "--ignore-blank-lines", "--new-file", "--side-by-side", "--suppress-common-lines", "--color?", "--report-identical-files", "--strip-trailing-cr", "--exclude=", "--width="], Content).searching("always").following(),
    program("stat", "Lft", "c", &["--format=", "--printf=", "--terse", "--dereference", "--file-system"], Names),
    program("file", "bhiLNk0", "F", &["--brief", "--mime", "--mime-type", "--mime-encoding", "--dereference"], Content),
    program("du", "abchkmsSxl0", "dt", &["--all", "--summarize", "--human-readable", "--total", "--max-depth=", "--apparent-size", "--bytes", "--exclude=", "--si", "--time", "--threshold="], Names),
    program("df", "ahHiklmPT", "t", &["--all", "--human-readable", "--inodes", "--print-type", "--total", "--si", "--local"], Content),
    program("tree", "adfipsughDFqNQrtcUvCnxJX", "LIP", &["--noreport", "--dirsfirst", "--prune", "--filelimit=", "--gitignore", "--sort=", "--du", "--si", "--matchdirs", "--ignore-case"], Content).reading_letters(Letters::ValueApart),
    program("basename", "az", "s", &["--multiple", "--suffix=", "--zero"], Text),
    program("dirname", "z", "", &["--zero"], Text),
    program("realpath", "emLPqsz", "", &["--canonicalize-existing", "--canonicalize-missing", "--no-symlinks", "--relative-to=", "--relative-base="], Content),
    program("readlink", "femnqsvz", "", &["--canonicalize", "--canonicalize-existing", "--canonicalize-missing"], Content),
    program("pwd", "LP", "", &[], Nothing),
    program("seq", "w", "sf", &[], Text),
    program("which", "a", "", &["--all"], Text),
    program("type", "aptPf", "", &[], Text),
    program("whoami", "", "", &[], Nothing),
    program("id", "ugGnrz", "", &["--user", "--group", "--groups", "--name"], Nothing),
    program("uname", "asnrvmpio", "", &["--all", "--kernel-name", "--kernel-release", "--machine", "--operating-system"], Nothing),
    program("arch", "", "", &[], Nothing),
    program("nproc", "", "", &["--all"], Nothing),
    program("uptime", "ps", "", &["--pretty", "--since"], Nothing),
    program("date", "uR", "d", &["--utc", "--universal", "--rfc-email", "--date=", "--iso-8601?", "--rfc-3339="], Format),
    program("md5sum", "bt", "", &[], Content),
    program("sha1sum", "bt", "", &[], Content),
    program("sha256sum", "bt", "", &[], Content),
    program("sha512sum", "bt", "", &[], Content),
    program("cksum", "", "", &[], Content),
    program("b2sum", "bt", "", &[], Content),
    program("sum", "rs", "", &[], Content),
    program("od", "abcdfilosxv", "AtNj", &["--address-radix=", "--format=", "--read-bytes=", "--skip-bytes=", "--width?", "--output-duplicates"], Content),
    program("xxd", "abCeEipu", "cglson", &[], One).reading_letters(Letters::FirstOnly),
    program("hexdump", "bcCdovx", "ns", &[], Content),
    program("base64", "di", "w", &["--decode", "--ignore-garbage", "--wrap="], Content),
    program("column", "tx", "sco", &["--table", "--separator=", "--output-separator="], Content),
    program("expand", "i", "t", &["--initial", "--tabs="], Content),
    program("unexpand", "a", "t", &["--all", "--tabs="], Content),
    program("join", "iz", "12aejotv", &["--header", "--ignore-case", "--nocheck-order"], Content),
    program("tsort", "", "", &[], Content),
    program("hostname", "fsiI", "", &["--fqdn", "--short"], Nothing),
    program("groups", "", "", &[], Nothing),
    program("tty", "s", "", &[], Nothing),
    program("expr", "", "", &[], Text),
    program("free", "bhkmgtw", "", &["--human", "--total", "--wide"], Nothing),
];
