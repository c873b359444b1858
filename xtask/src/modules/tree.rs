// SPDX-License-Identifier: MIT OR Apache-2.0
//! The modules of a crate, without its tests: what each defines, imports and names.

use super::paths::{Named, paths};
use super::source;
use anyhow::{Context, Result};
use quote::ToTokens;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use syn::{Item, UseTree};

/// A crate's modules; the first is its root.
pub struct Tree {
    pub modules: Vec<Module>,
    pub code_lines: usize,
}

/// One module.
#[derive(Default)]
pub struct Module {
    /// As written after `crate::`; empty for the root.
    pub name: String,
    pub file: PathBuf,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Its items and imports. A module and a function may have one name.
    pub bindings: BTreeMap<String, Binding>,
    /// What it imports everything of.
    pub globs: Vec<Vec<String>>,
    /// Every path that its code names.
    pub named: Vec<Named>,
}

/// What a name stands for within a module.
pub enum Binding {
    Item,
    Import(Vec<String>),
}

impl Tree {
    /// Reads the crate whose root is `file`, and every file that it declares.
    pub fn read(file: &Path) -> Result<Tree> {
        let mut tree = Tree {
            modules: Vec::new(),
            code_lines: 0,
        };
        let directory = file.parent().context("a file is in a directory")?;
        tree.add_file(file, directory, String::new(), None)?;
        Ok(tree)
    }

    fn add_file(
        &mut self,
        file: &Path,
        directory: &Path,
        name: String,
        parent: Option<usize>,
    ) -> Result<usize> {
        let tokens = source::read(file)?;
        self.code_lines += source::code_lines(&tokens);
        let parsed: syn::File = syn::parse2(tokens).with_context(|| file.display().to_string())?;
        let module = Module {
            name,
            file: file.to_path_buf(),
            parent,
            ..Module::default()
        };
        self.add(module, parsed.items, directory)
    }

    /// `directory` has the files of the module's children.
    fn add(&mut self, module: Module, items: Vec<Item>, directory: &Path) -> Result<usize> {
        let at = self.modules.len();
        self.modules.push(module);
        for item in items {
            match item {
                Item::Mod(child) => self.add_child(at, child, directory)?,
                item => self.modules[at].add_item(item),
            }
        }
        Ok(at)
    }

    fn add_child(&mut self, parent: usize, child: syn::ItemMod, directory: &Path) -> Result<()> {
        let ident = child.ident.to_string();
        let name = match self.modules[parent].name.as_str() {
            "" => ident.clone(),
            outer => format!("{outer}::{ident}"),
        };
        let directory_of_children = directory.join(&ident);
        let index = match child.content {
            Some((_, items)) => {
                let module = Module {
                    name,
                    file: self.modules[parent].file.clone(),
                    parent: Some(parent),
                    ..Module::default()
                };
                self.add(module, items, &directory_of_children)?
            }
            None => {
                let flat = directory.join(format!("{ident}.rs"));
                let nested = directory_of_children.join("mod.rs");
                let file = if flat.exists() { flat } else { nested };
                self.add_file(&file, &directory_of_children, name, Some(parent))?
            }
        };
        self.modules[parent].children.insert(ident, index);
        Ok(())
    }
}

impl Module {
    fn add_item(&mut self, item: Item) {
        self.named.extend(paths(&item.to_token_stream()));
        if let Item::Use(item) = item {
            return self.add_imports(Vec::new(), item.tree);
        }
        for name in defined(&item) {
            self.bindings.insert(name, Binding::Item);
        }
    }

    fn add_imports(&mut self, mut path: Vec<String>, tree: UseTree) {
        match tree {
            UseTree::Path(next) => {
                path.push(next.ident.to_string());
                self.add_imports(path, *next.tree);
            }
            UseTree::Name(name) => self.add_import(path, name.ident.to_string(), None),
            UseTree::Rename(name) => {
                self.add_import(path, name.ident.to_string(), Some(name.rename.to_string()));
            }
            UseTree::Glob(_) => self.globs.push(path),
            UseTree::Group(group) => {
                for tree in group.items {
                    self.add_imports(path.clone(), tree);
                }
            }
        }
    }

    fn add_import(&mut self, mut path: Vec<String>, last: String, renamed: Option<String>) {
        if last != "self" {
            path.push(last);
        }
        if let Some(name) = renamed.or_else(|| path.last().cloned()) {
            self.bindings.insert(name, Binding::Import(path));
        }
    }
}

fn defined(item: &Item) -> Vec<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => return item.ident.iter().map(ToString::to_string).collect(),
        Item::ForeignMod(block) => return block.items.iter().filter_map(foreign).collect(),
        _ => return Vec::new(),
    };
    vec![ident.to_string()]
}

fn foreign(item: &syn::ForeignItem) -> Option<String> {
    match item {
        syn::ForeignItem::Fn(item) => Some(item.sig.ident.to_string()),
        syn::ForeignItem::Static(item) => Some(item.ident.to_string()),
        _ => None,
    }
}
