//! Lists the files of the page, so that whatever lies there is served.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=page");
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let page = Path::new(&root).join("page");
    let entries = fs::read_dir(&page).expect("the page is there");
    let names = entries.map(|entry| {
        let name = entry.expect("it can be read").file_name();
        name.into_string().expect("names are UTF-8")
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    let files = names.iter().map(|name| {
        let path = match name.as_str() {
            "index.html" => "/".to_owned(),
            name => format!("/{name}"),
        };
        let kind = match name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => panic!("{name}: a page has files of the kinds html, css, js and svg"),
        };
        let text = page.join(name);
        let text = text.to_str().expect("paths are UTF-8");
        format!("    ({path:?}, {kind:?}, include_str!({text:?})),\n")
    });
    let files: String = files.collect();
    let count = names.len();
    let list = format!("/// The page.\npub(crate) const FILES: [File; {count}] = [\n{files}];\n");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("files.rs"), list).expect("it can be written");
}
