//! The programs that only read, and every option that leaves them so.
//!
//! Values of options are texts and figures: an option that takes the name of a file has no place here.

/// A program and everything that may be said to it.
pub(super) struct ReadOnlyProgram {
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

pub(super) const fn program_entry(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> ReadOnlyProgram {
    ReadOnlyProgram {
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

impl ReadOnlyProgram {
    const fn searching_with(self, searches_with: &'static str) -> Self {
        Self { searches_with, ..self }
    }

    const fn with_letters(self, letters: Letters) -> Self {
        Self { letters, ..self }
    }

    const fn following_links(self) -> Self {
        Self { follows_links: true, ..self }
    }
}

#[rustfmt::skip]
pub(super) const PROGRAMS: &[ReadOnlyProgram] = &[
    program_entry("ls", "1aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ", "wIT", &["--all", "--almost-all", "--human-readable", "--recursive", "--reverse", "--color?", "--sort=", "--time=", "--time-style=", "--full-time", "--group-directories-first", "--classify", "--directory", "--size", "--inode", "--ignore="], Names),
    program_entry("cat", "AbeEnstTuv", "", &["--number", "--number-nonblank", "--show-all", "--show-ends", "--show-tabs", "--squeeze-blank"], Content),
    program_entry("tac", "", "", &[], Content),
    program_entry("nl", "", "bdfhilnsvw", &["--body-numbering=", "--number-format=", "--number-width=", "--number-separator="], Content),
    program_entry("head", "qvz", "nc", &["--lines=", "--bytes=", "--quiet", "--verbose", "--silent", "--zero-terminated"], Content),
    program_entry("tail", "qvz", "nc", &["--lines=", "--bytes=", "--quiet", "--verbose", "--silent", "--zero-terminated"], Content),
    program_entry("wc", "clmwL", "", &["--lines", "--words", "--bytes", "--chars", "--max-line-length", "--total="], Content),
    program_entry("grep", "EFGPivwxcloLHhnsqrabzZTUyI", "eABCm", &["--recursive", "--ignore-case", "--no-ignore-case", "--line-number", "--count", "--files-with-matches", "--files-without-match", "--only-matching", "--word-regexp", "--line-regexp", "--invert-match", "--extended-regexp", "--fixed-strings", "--perl-regexp", "--basic-regexp", "--no-filename", "--with-filename", "--no-messages", "--quiet", "--text", "--color?", "--include=", "--exclude=", "--exclude-dir=", "--context=", "--after-context=", "--before-context=", "--max-count="], Pattern).searching_with("r"),
    program_entry("egrep", "ivwxclonHhsr", "eABCm", &["--include=", "--exclude=", "--exclude-dir="], Pattern).searching_with("r"),
    program_entry("fgrep", "ivwxclonHhsr", "eABCm", &["--include=", "--exclude=", "--exclude-dir="], Pattern).searching_with("r"),
    program_entry("rg", "ivwxclnNHhoFPSsUaq0pu.I", "egtTABCmMjdr", &["--files", "--type=", "--type-not=", "--type-list", "--glob=", "--iglob=", "--ignore-case", "--smart-case", "--case-sensitive", "--word-regexp", "--line-regexp", "--fixed-strings", "--count", "--count-matches", "--files-with-matches", "--files-without-match", "--line-number", "--no-line-number", "--heading", "--no-heading", "--column", "--json", "--stats", "--sort=", "--sortr=", "--context=", "--after-context=", "--before-context=", "--max-count=", "--max-depth=", "--max-columns=", "--multiline", "--only-matching", "--invert-match", "--with-filename", "--no-filename", "--color=", "--trim", "--vimgrep", "--pcre2", "--replace=", "--null", "--regexp=", "--hidden", "--no-hidden", "--no-ignore", "--no-ignore-vcs", "--no-ignore-parent", "--no-config", "--no-messages", "--no-column", "--max-filesize=", "--passthru", "--pretty", "--text", "--threads=", "--crlf", "--null-data", "--quiet", "--one-file-system", "--context-separator=", "--byte-offset"], Pattern).searching_with("always"),
    program_entry("sort", "bcCdfghiMnrRsuVz", "kt", &["--reverse", "--numeric-sort", "--unique", "--human-numeric-sort", "--version-sort", "--ignore-case", "--stable", "--check?", "--ignore-leading-blanks", "--dictionary-order", "--general-numeric-sort", "--month-sort", "--random-sort", "--zero-terminated", "--debug", "--key=", "--field-separator="], Content),
    program_entry("uniq", "cdDiuz", "fsw", &["--count", "--repeated", "--unique", "--ignore-case", "--skip-fields=", "--skip-chars="], One),
    program_entry("cut", "sz", "dfcb", &["--delimiter=", "--fields=", "--characters=", "--bytes=", "--complement", "--only-delimited", "--output-delimiter="], Content),
    program_entry("tr", "cCdst", "", &["--complement", "--delete", "--squeeze-repeats", "--truncate-set1"], Text),
    program_entry("rev", "", "", &[], Content),
    program_entry("paste", "sz", "d", &[], Content),
    program_entry("fold", "bs", "w", &[], Content),
    program_entry("comm", "123", "", &["--nocheck-order"], Content),
    program_entry("cmp", "bls", "n", &[], Content),
    program_entry("diff", "abBcdeEinNpqrstTuwyZ", "UCWI", &["--unified?", "--context?", "--brief", "--recursive", "--ignore-case", "--ignore-all-space", "--ignore-space-change", "--ignore-blank-lines", "--new-file", "--side-by-side", "--suppress-common-lines", "--color?", "--report-identical-files", "--strip-trailing-cr", "--exclude=", "--width="], Content).searching_with("always").following_links(),
    program_entry("stat", "Lft", "c", &["--format=", "--printf=", "--terse", "--dereference", "--file-system"], Names),
    program_entry("file", "bhiLNk0", "F", &["--brief", "--mime", "--mime-type", "--mime-encoding", "--dereference"], Content),
    program_entry("du", "abchkmsSxl0", "dt", &["--all", "--summarize", "--human-readable", "--total", "--max-depth=", "--apparent-size", "--bytes", "--exclude=", "--si", "--time", "--threshold="], Names),
    program_entry("df", "ahHiklmPT", "t", &["--all", "--human-readable", "--inodes", "--print-type", "--total", "--si", "--local"], Content),
    program_entry("tree", "adfipsughDFqNQrtcUvCnxJX", "LIP", &["--noreport", "--dirsfirst", "--prune", "--filelimit=", "--gitignore", "--sort=", "--du", "--si", "--matchdirs", "--ignore-case"], Content).with_letters(Letters::ValueApart),
    program_entry("basename", "az", "s", &["--multiple", "--suffix=", "--zero"], Text),
    program_entry("dirname", "z", "", &["--zero"], Text),
    program_entry("realpath", "emLPqsz", "", &["--canonicalize-existing", "--canonicalize-missing", "--no-symlinks", "--relative-to=", "--relative-base="], Content),
    program_entry("readlink", "femnqsvz", "", &["--canonicalize", "--canonicalize-existing", "--canonicalize-missing"], Content),
    program_entry("pwd", "LP", "", &[], Nothing),
    program_entry("seq", "w", "sf", &[], Text),
    program_entry("which", "a", "", &["--all"], Text),
    program_entry("type", "aptPf", "", &[], Text),
    program_entry("whoami", "", "", &[], Nothing),
    program_entry("id", "ugGnrz", "", &["--user", "--group", "--groups", "--name"], Nothing),
    program_entry("uname", "asnrvmpio", "", &["--all", "--kernel-name", "--kernel-release", "--machine", "--operating-system"], Nothing),
    program_entry("arch", "", "", &[], Nothing),
    program_entry("nproc", "", "", &["--all"], Nothing),
    program_entry("uptime", "ps", "", &["--pretty", "--since"], Nothing),
    program_entry("date", "uR", "d", &["--utc", "--universal", "--rfc-email", "--date=", "--iso-8601?", "--rfc-3339="], Format),
    program_entry("md5sum", "bt", "", &[], Content),
    program_entry("sha1sum", "bt", "", &[], Content),
    program_entry("sha256sum", "bt", "", &[], Content),
    program_entry("sha512sum", "bt", "", &[], Content),
    program_entry("cksum", "", "", &[], Content),
    program_entry("b2sum", "bt", "", &[], Content),
    program_entry("sum", "rs", "", &[], Content),
    program_entry("od", "abcdfilosxv", "AtNj", &["--address-radix=", "--format=", "--read-bytes=", "--skip-bytes=", "--width?", "--output-duplicates"], Content),
    program_entry("xxd", "abCeEipu", "cglson", &[], One).with_letters(Letters::FirstOnly),
    program_entry("hexdump", "bcCdovx", "ns", &[], Content),
    program_entry("base64", "di", "w", &["--decode", "--ignore-garbage", "--wrap="], Content),
    program_entry("column", "tx", "sco", &["--table", "--separator=", "--output-separator="], Content),
    program_entry("expand", "i", "t", &["--initial", "--tabs="], Content),
    program_entry("unexpand", "a", "t", &["--all", "--tabs="], Content),
    program_entry("join", "iz", "12aejotv", &["--header", "--ignore-case", "--nocheck-order"], Content),
    program_entry("tsort", "", "", &[], Content),
    program_entry("hostname", "fsiI", "", &["--fqdn", "--short"], Nothing),
    program_entry("groups", "", "", &[], Nothing),
    program_entry("tty", "s", "", &[], Nothing),
    program_entry("expr", "", "", &[], Text),
    program_entry("free", "bhkmgtw", "", &["--human", "--total", "--wide"], Nothing),
];
