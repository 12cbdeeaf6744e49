//! Lists the files of the built page, `web/dist`, and the pages of `docs` for the server to embed. Nothing is fetched or
//! built here: without the page's files the server has the small page of `src/page` instead.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../web/dist");
    // Cargo takes a watched path that does not exist for changed at every build. An empty folder is as good as none, and
    // where the sources are read-only nothing will be built into it either.
    fs::create_dir_all(&root).ok();
    println!("cargo:rerun-if-changed=build.rs");
    if root.is_dir() {
        println!("cargo:rerun-if-changed={}", root.display());
    }
    let mut files = Vec::new();
    list_files(&root, "", &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    for (name, path) in files.iter().filter(|_| root.join("index.html").exists()) {
        writeln!(code, "    ({name:?}, include_bytes!({path:?}) as &[u8]),").map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("built_page.rs"), code)?;
    fs::write(out.join("docs.rs"), list_docs()?)
}

/// The documentation without its pictures, decisions and measurements: what people read who use the server.
fn list_docs() -> io::Result<String> {
    let docs = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../docs");
    if docs.is_dir() {
        println!("cargo:rerun-if-changed={}", docs.display());
    }
    let mut files = Vec::new();
    list_files(&docs, "", &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    let read =
        |name: &str| name.ends_with(".md") && !name.starts_with("decisions/") && !name.starts_with("measurements/");
    for (name, path) in files.iter().filter(|(name, _)| read(name)) {
        writeln!(code, "    ({name:?}, include_str!({path:?})),").map_err(io::Error::other)?;
    }
    code.push_str("]\n");
    Ok(code)
}

fn list_files(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // Maps for debuggers are large, and of no use to a browser that has the page's own sources elsewhere.
        if entry.file_type()?.is_dir() {
            list_files(&entry.path(), &format!("{name}/"), files)?;
        } else if !name.ends_with(".map") && !name.starts_with('.') {
            files.push((name, entry.path().canonicalize()?));
        }
    }
    Ok(())
}
