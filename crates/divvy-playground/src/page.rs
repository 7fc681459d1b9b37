//! The files of the page: all that lie in `page/`, as the build finds them.

/// A file: its path, its type and its text.
pub(crate) type File = (&'static str, &'static str, &'static str);

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Their paths: they are nobody's secret.
pub(crate) const PATHS: [&str; FILES.len()] = {
    let mut paths = [""; FILES.len()];
    let mut index = 0;
    while index < FILES.len() {
        paths[index] = FILES[index].0;
        index += 1;
    }
    paths
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_what_it_names_are_served() {
        assert!(PATHS.contains(&"/"));
        let page = FILES.iter().find(|(path, _, _)| *path == "/");
        let (_, kind, text) = page.expect("there is a page");
        assert!(kind.starts_with("text/html"));
        let named = text.split('"').filter(|word| {
            let is_file = [".css", ".js", ".svg"]
                .iter()
                .any(|end| word.ends_with(end));
            word.starts_with('/') && is_file
        });
        for path in named {
            assert!(PATHS.contains(&path), "{path}");
        }
    }
}
