//! The names of files and directories in a BLZ dataset.
//!
//! ```text
//!  data/__1__.bin      superchunks, from 1: the document, and ours
//!  data/__0.blp        chunks, from 0: BLZ and bcolz
//!  data/my%20field     the column of a field
//!  data/.tmp-…         a temporary file of a writer that works, or died
//! ```

/// The prefix of temporary files.
pub const TEMP: &str = chunkyard_store::TEMP_PREFIX;

/// How the data files of a dataset are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// `__1__.bin`: many chunks each, from 1.
    Superchunk,
    /// `__0.blp`: one chunk each, from 0.
    Legacy,
}

/// The file of superchunk `n`, from 1.
pub fn superchunk_file(n: u64) -> String {
    format!("__{n}__.bin")
}

/// The file of chunk `n`, from 0, in BLZ and bcolz.
pub fn legacy_file(n: u64) -> String {
    format!("__{n}.blp")
}

/// The data file with this name. Only the spelling that writers use is a valid name.
pub fn parse_file(name: &str) -> Option<(Style, u64)> {
    let inner = name.strip_prefix("__")?;
    if let Some(digits) = inner.strip_suffix("__.bin") {
        return number(digits).filter(|&n| n > 0).map(|n| (Style::Superchunk, n));
    }
    number(inner.strip_suffix(".blp")?).map(|n| (Style::Legacy, n))
}

/// A number without a sign or leading zeros.
fn number(digits: &str) -> Option<u64> {
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = canonical && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| canonical)
}

/// The directory of the field with this name.
///
/// Bytes outside `[A-Za-z0-9_.-]` are percent-encoded. So is the first of a name that would be taken
/// for something else: one that begins with `__`, the two directories of dots, and a temporary file.
pub fn field_dir(field: &str) -> String {
    if field.is_empty() {
        // NumPy has no field without a name; a percent sign that encodes nothing keeps this a bijection.
        return "%".to_owned();
    }
    let taken = field.starts_with("__") || field.starts_with(TEMP) || matches!(field, "." | "..");
    let mut out = String::with_capacity(field.len());
    for (at, byte) in field.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        match plain && !(taken && at == 0) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The path of the column with this name; names of nested fields are joined by slashes.
pub fn field_path(name: &str) -> String {
    let dirs: Vec<_> = name.trim_matches('/').split('/').map(field_dir).collect();
    format!("/{}", dirs.join("/"))
}

/// The field whose directory has this name, if it is one that [`field_dir`] gives.
pub fn parse_field_dir(name: &str) -> Option<String> {
    if name == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        let plain = match byte {
            b'%' => {
                let [high, low] =
                    [rest.next()?, rest.next()?].map(|digit| char::from(digit).to_digit(16));
                u8::try_from(high? * 16 + low?).ok()?
            }
            byte => byte,
        };
        bytes.push(plain);
    }
    String::from_utf8(bytes).ok().filter(|field| !field.is_empty() && field_dir(field) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_files_are_known_by_their_names() {
        for n in [1, 2, 1030, u64::MAX] {
            assert_eq!(parse_file(&superchunk_file(n)), Some((Style::Superchunk, n)));
            assert_eq!(parse_file(&legacy_file(n)), Some((Style::Legacy, n)));
        }
        assert_eq!(superchunk_file(1), "__1__.bin");
        assert_eq!(legacy_file(0), "__0.blp");
        assert_eq!(parse_file("__0.blp"), Some((Style::Legacy, 0)));
    }

    #[test]
    fn other_spellings_are_not_data_files() {
        let beyond = format!("__{}0__.bin", u64::MAX);
        for name in [
            "",
            "__",
            "____.bin",
            "__.blp",
            "__0__.bin",
            "__01__.bin",
            "__+1__.bin",
            "__00.blp",
            "__1__.BIN",
            "_1__.bin",
            "__1__.bin~",
            "__-1.blp",
            "__1__.blp",
            "__1.bin",
            &beyond,
        ] {
            assert_eq!(parse_file(name), None, "{name}");
        }
    }

    #[test]
    fn fields_have_directories_that_name_them() {
        let names = [
            ("x", "x"),
            ("my-field_2.5", "my-field_2.5"),
            ("a b", "a%20b"),
            ("a/b", "a%2Fb"),
            ("100%", "100%25"),
            ("né", "n%C3%A9"),
            ("_x", "_x"),
            ("__x", "%5F_x"),
            ("__1__.bin", "%5F_1__.bin"),
            (".", "%2E"),
            ("..", "%2E."),
            ("...", "..."),
            (".tmp-1", "%2Etmp-1"),
            ("", "%"),
        ];
        for (field, directory) in names {
            assert_eq!(field_dir(field), directory);
            assert_eq!(parse_field_dir(directory).as_deref(), Some(field));
        }
    }

    #[test]
    fn a_directory_in_another_spelling_is_not_a_field() {
        for name in
            ["", "a b", "%61", "a%2fb", "%", "%4", "%zz", "%FF", "__x", "..", "a/b", ".tmp-1"]
        {
            assert_eq!(parse_field_dir(name), (name == "%").then(String::new), "{name}");
        }
    }
}
