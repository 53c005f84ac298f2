//! What the macros know of the package being compiled: its contract, its folder, its library.

use gpuemu_contract::{Contract, Op};
use proc_macro2::TokenStream;
use quote::quote;
use std::env;
use std::path::{Path, PathBuf};

/// The package being compiled.
pub struct Project {
    /// Its contract.
    pub contract: Contract,
    /// Its folder.
    pub folder: PathBuf,
    /// Name of its library crate, unless that is the crate being compiled.
    pub library: Option<String>,
}

impl Project {
    /// The package that cargo compiles now. The error is fit to be a compile error.
    pub fn of_package() -> Result<Project, String> {
        let folder = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let folder = folder.ok_or("CARGO_MANIFEST_DIR is not set: gpuemu's macros work in packages built by cargo")?;
        let named = env::var_os("GPUEMU_CONFIG").filter(|named| !named.is_empty());
        let path = contract_of(&folder, named.as_deref().map(Path::new))?;
        let contract = Contract::load(&path).map_err(|errors| errors.to_string())?;
        let library = library_name(&folder).filter(|name| env::var("CARGO_CRATE_NAME").as_ref() != Ok(name));
        Ok(Project { contract, folder, library })
    }

    /// The op of that name, or a message that names the nearest and all.
    pub fn op(&self, name: &str) -> Result<&Op, String> {
        self.contract.op(name).ok_or_else(|| {
            let names = || self.contract.ops.iter().map(|op| op.name.as_str());
            let hint = match gpuemu_contract::nearest(name, names()) {
                Some(nearest) => format!("; did you mean `{nearest}`?"),
                None => String::new(),
            };
            let path = self.contract.path.display();
            let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            let all = if all.is_empty() { "no op".to_owned() } else { all.join(", ") };
            format!("no op `{name}` in the contract{hint}\n{path} declares {all}")
        })
    }

    /// Items that make cargo rebuild when the contract, or the variable that names it, changes.
    pub fn tracked(&self) -> TokenStream {
        let path = self.contract.path.to_string_lossy();
        quote! {
            const _: &[u8] = ::core::include_bytes!(#path);
            const _: ::core::option::Option<&str> = ::core::option_env!("GPUEMU_CONFIG");
        }
    }

    /// An expression: where the contract was and which package this is, for a binary that runs from another folder.
    pub fn origin(&self) -> TokenStream {
        let (folder, contract) = (self.folder.to_string_lossy(), self.contract.path.to_string_lossy());
        quote!(::gpuemu_harness::Origin { package: #folder, contract: #contract })
    }
}

/// The contract of the package in a folder, or the one that is named.
fn contract_of(folder: &Path, named: Option<&Path>) -> Result<PathBuf, String> {
    match named {
        Some(named) => named_file(folder, named),
        None => Contract::find(folder).map_err(|errors| errors.to_string()),
    }
}

/// The file that `GPUEMU_CONFIG` names. A relative one is looked for from the package's folder upwards: cargo compiles
/// in the workspace's folder and runs tests in the package's, and the user may have meant either.
fn named_file(folder: &Path, named: &Path) -> Result<PathBuf, String> {
    let found = folder.ancestors().map(|folder| folder.join(named)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let (named, folder) = (named.display(), folder.display());
        format!("GPUEMU_CONFIG names {named}, but there is no such file in {folder} or in any folder above it")
    })
}

/// The name of the package's library crate, if it has one that can be linked.
fn library_name(folder: &Path) -> Option<String> {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    let package = env::var("CARGO_PKG_NAME").ok()?;
    library_of(&manifest, &package, folder.join("src/lib.rs").is_file())
}

/// Reads what the `[lib]` table says by its lines: a name, a path, crate types. Whoever writes it in another way names
/// the crate in the macro's argument.
fn library_of(manifest: &str, package: &str, has_lib_rs: bool) -> Option<String> {
    let lines = || manifest.lines().map(str::trim);
    let table = || lines().skip_while(|line| *line != "[lib]").skip(1).take_while(|line| !line.starts_with('['));
    let value = |key: &str| {
        table().find_map(|line| Some(line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().to_owned()))
    };
    let declared = lines().any(|line| line == "[lib]");
    let linkable = match (value("crate-type"), value("proc-macro")) {
        (_, Some(flag)) if flag.starts_with("true") => false,
        (Some(types), _) => ["\"lib\"", "\"rlib\"", "\"dylib\""].iter().any(|kind| types.contains(kind)),
        (None, _) => true,
    };
    if !(declared || has_lib_rs) || !linkable {
        return None;
    }
    let named = value("name").and_then(|name| Some(name.split('"').nth(1)?.to_owned()));
    Some(named.unwrap_or_else(|| package.replace('-', "_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_contract_says_where_it_was_looked_for() {
        let folder = Path::new("/no-such-folder/kernels");
        let message = contract_of(folder, None).unwrap_err();
        assert!(
            message.starts_with("/no-such-folder/kernels: no gpuemu.toml here or in any folder above"),
            "{message}"
        );
        let message = contract_of(folder, Some(Path::new("other.toml"))).unwrap_err();
        assert_eq!(
            message,
            "GPUEMU_CONFIG names other.toml, but there is no such file in /no-such-folder/kernels or in any folder above it"
        );
    }

    #[test]
    fn a_relative_name_is_looked_for_upwards() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = contract_of(&package.join("src"), Some(Path::new("gpuemu.toml"))).unwrap();
        assert_eq!(found, package.join("gpuemu.toml"));
    }

    #[test]
    fn library_names() {
        // manifest, whether src/lib.rs exists -> crate
        let table: &[(&str, bool, Option<&str>)] = &[
            ("[package]\nname = \"my-kernels\"\n", true, Some("my_kernels")),
            ("[package]\nname = \"my-kernels\"\n", false, None),
            ("[lib]\npath = \"kernels.rs\"\n[dependencies]\nname = \"no\"\n", false, Some("my_kernels")),
            ("[lib]\nname = \"kernels\" # shorter\n", true, Some("kernels")),
            ("[lib]\ncrate-type = [\"cdylib\"]\n", true, None),
            ("[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n", true, Some("my_kernels")),
            ("[lib]\nproc-macro = true\n", true, None),
        ];
        for (manifest, has_lib_rs, expected) in table {
            assert_eq!(library_of(manifest, "my-kernels", *has_lib_rs).as_deref(), *expected, "{manifest}");
        }
    }
}
