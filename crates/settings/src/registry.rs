//! Registries of kinds. Each kind is declared next to its code; a registry lists the kinds by name,
//! and builds a kind from named values.
//!
//! A kind is a [`KindEntry`], which [`kind!`](crate::kind) declares. To add a kind to a crate, add
//! one line to the list from which the crate creates a [`Registry`]. A program that uses the crate
//! adds its own kinds with [`Registry::with`].

use std::error::Error as StdError;

use thiserror::Error;

use crate::datum::Datum;
use crate::effect::Effect;
use crate::error::SettingError;
use crate::setting::{Fallback, Setting, Variant};
use crate::suggest::nearest;
use crate::value::SettingValue;

/// A kind of `T`, with its name, parameters and constructor. `C` is the context that the
/// constructor needs in addition to its parameters.
pub struct KindEntry<T, C = ()> {
    /// Name of the kind, its description, and its parameters.
    pub variant: Variant,
    /// Constructor of the kind.
    pub build: fn(&KindParameters<'_>, C) -> Result<T, KindError>,
    /// Effects of the parameters for which the kind has a rule, in combination with the values of
    /// the others.
    pub effects: fn(&KindParameters<'_>, &C) -> Result<Vec<Effect>, KindError>,
}

impl<T, C> std::fmt::Debug for KindEntry<T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.variant.fmt(f)
    }
}

/// Reason why a kind cannot be built.
#[derive(Debug, Error)]
pub enum KindError {
    /// No kind has this name.
    #[error("there is no kind `{found}`; it is one of {known}{}", hint(nearest.as_deref()))]
    Unknown {
        /// The requested name.
        found: String,
        /// Names of all kinds.
        known: String,
        /// Most similar name, if there is one.
        nearest: Option<String>,
    },
    /// A parameter does not exist, or rejects its value.
    #[error(transparent)]
    Parameter(#[from] SettingError),
    /// A parameter without a default is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// Parameters contradict each other.
    #[error(transparent)]
    Together(Box<dyn StdError + Send + Sync>),
}

impl KindError {
    /// Creates the error that parameters contradict each other, with the given reason.
    pub fn together(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        KindError::Together(error.into())
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Values from which a kind is built; each is checked against its declaration.
#[derive(Debug)]
pub struct KindParameters<'a> {
    kind: &'static str,
    declared: &'static [Setting],
    given: &'a [(String, Datum)],
}

impl<'a> KindParameters<'a> {
    /// Values `given` for a kind that declares these parameters.
    pub(crate) const fn new(
        kind: &'static str,
        declared: &'static [Setting],
        given: &'a [(String, Datum)],
    ) -> Self {
        Self {
            kind,
            declared,
            given,
        }
    }

    /// Name of the kind that is built, because one function may build several kinds.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Declarations of the kind's parameters.
    pub fn declared(&self) -> &'static [Setting] {
        self.declared
    }

    /// All parameters that have a value or a default, in the order of declaration.
    ///
    /// # Errors
    /// A parameter is missing, or its value does not match its declaration.
    pub fn all(&self) -> Result<Vec<(&'static str, Datum)>, KindError> {
        let mut all = Vec::with_capacity(self.declared.len());
        for setting in self.declared {
            let datum = match (self.datum(setting.name), setting.fallback) {
                (Some(datum), _) => datum.clone(),
                (None, Fallback::Is(text)) => setting.parse(text)?,
                (None, Fallback::Required) => return Err(KindError::Missing(setting.name)),
                (None, Fallback::Owner | Fallback::Nothing) => continue,
            };
            let checked = setting.kind.check(&datum);
            checked.map_err(|invalid_value| setting.error(invalid_value))?;
            all.push((setting.name, datum));
        }
        Ok(all)
    }

    /// Value of the parameter `name`, or its default, or the value that its type defines for a
    /// missing parameter.
    ///
    /// # Errors
    /// The parameter is missing, or its value does not match its declaration.
    pub fn get<T: SettingValue>(&self, name: &str) -> Result<T, KindError> {
        let setting = crate::macros::find(self.declared, name)?;
        let datum = match (self.datum(name), setting.fallback) {
            (Some(datum), _) => datum.clone(),
            (None, Fallback::Is(text)) => setting.parse(text)?,
            (None, Fallback::Owner | Fallback::Nothing) => {
                return T::from_parameter(None).ok_or(KindError::Missing(setting.name));
            }
            (None, Fallback::Required) => return Err(KindError::Missing(setting.name)),
        };
        let kind = &setting.kind;
        let checked = kind.check(&datum);
        checked.map_err(|invalid_value| setting.error(invalid_value))?;
        let invalid_value = || setting.error(kind.invalid_value(kind.show(&datum)));
        Ok(T::from_parameter(Some(&datum)).ok_or_else(invalid_value)?)
    }

    /// Whether the parameter `name` has a value other than its default.
    fn differs(&self, name: &str) -> bool {
        let setting = crate::macros::look_up(self.declared, name);
        let default = setting.and_then(|it| match it.fallback {
            Fallback::Is(text) => it.parse(text).ok(),
            _ => None,
        });
        self.datum(name)
            .is_some_and(|datum| default.as_ref() != Some(datum))
    }

    fn datum(&self, name: &str) -> Option<&Datum> {
        let given = self.given.iter().find(|(known, _)| known == name);
        given.map(|(_, datum)| datum)
    }
}

/// The kinds of `T` that a program supports.
pub struct Registry<T: 'static, C: 'static = ()> {
    entries: Vec<&'static KindEntry<T, C>>,
}

impl<T, C> Clone for Registry<T, C> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
        }
    }
}

/// The interface of a registry that the grammar of specs needs, which does not depend on the type
/// that the kinds build.
pub trait Kinds: Sync {
    /// All kinds, with their parameters.
    fn variants(&self) -> Vec<Variant>;

    /// Checks that the kind `name` can be built from these parameters.
    ///
    /// # Errors
    /// The errors of [`Registry::build`].
    fn check(&self, name: &str, given: &[(String, Datum)]) -> Result<(), KindError>;
}

impl<T, C: Default> Kinds for Registry<T, C> {
    fn variants(&self) -> Vec<Variant> {
        Registry::variants(self)
    }

    fn check(&self, name: &str, given: &[(String, Datum)]) -> Result<(), KindError> {
        self.build(name, given, C::default()).map(drop)
    }
}

impl<T, C> std::fmt::Debug for Registry<T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}

impl<T, C> Registry<T, C> {
    /// Creates a registry of these kinds.
    pub fn new(entries: &[&'static KindEntry<T, C>]) -> Self {
        Self {
            entries: entries.to_vec(),
        }
    }

    /// Adds a kind; it replaces a kind with the same name.
    #[must_use]
    pub fn with(mut self, entry: &'static KindEntry<T, C>) -> Self {
        self.entries
            .retain(|known| known.variant.name != entry.variant.name);
        self.entries.push(entry);
        self
    }

    /// Names, descriptions and parameters of all kinds, for specs, schemas, help and manuals.
    pub fn variants(&self) -> Vec<Variant> {
        self.entries.iter().map(|entry| entry.variant).collect()
    }

    /// Finds the kind with this name.
    ///
    /// # Errors
    /// [`KindError::Unknown`] if there is none.
    pub fn find(&self, name: &str) -> Result<&'static KindEntry<T, C>, KindError> {
        let found = self.entries.iter().find(|entry| entry.variant.name == name);
        found.copied().ok_or_else(|| {
            let names = || self.entries.iter().map(|entry| entry.variant.name);
            let known: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            KindError::Unknown {
                found: name.to_owned(),
                known: known.join(", "),
                nearest: nearest(name, names()).map(str::to_owned),
            }
        })
    }

    /// Builds the kind `name` from the parameters `given`.
    ///
    /// # Errors
    /// The kind does not exist, a parameter is unknown, missing or out of its range, or parameters
    /// contradict each other.
    pub fn build(&self, name: &str, given: &[(String, Datum)], context: C) -> Result<T, KindError> {
        self.prepare(name, given.to_vec())?.build(context)
    }

    /// Prepares the kind `name` with its parameters, so that it can be built any number of times.
    ///
    /// # Errors
    /// The kind does not exist, or a parameter is unknown.
    pub fn prepare(
        &self,
        name: &str,
        given: Vec<(String, Datum)>,
    ) -> Result<Prepared<T, C>, KindError> {
        let entry = self.find(name)?;
        for (name, _) in &given {
            crate::macros::find(entry.variant.parameters, name)?;
        }
        Ok(Prepared { entry, given })
    }
}

/// A kind of `T` with the parameters that were given for it, from which it can be built.
pub struct Prepared<T: 'static, C: 'static = ()> {
    entry: &'static KindEntry<T, C>,
    given: Vec<(String, Datum)>,
}

impl<T, C> std::fmt::Debug for Prepared<T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prepared")
            .field(&self.entry.variant.name)
            .field(&self.given)
            .finish()
    }
}

impl<T, C> Prepared<T, C> {
    /// Builds the kind.
    ///
    /// # Errors
    /// A parameter is missing or out of its range, or parameters contradict each other.
    pub fn build(&self, context: C) -> Result<T, KindError> {
        (self.entry.build)(&self.parameters(), context)
    }

    /// Effects of parameters in combination with the values of the others. The result contains the
    /// parameters that differ from their defaults and for which the kind has a rule, and all keys
    /// that the tables of all kinds of the registry share, whether or not they are set.
    ///
    /// # Errors
    /// The errors of [`Self::build`].
    pub fn effects(&self, context: &C) -> Result<Vec<Effect>, KindError> {
        let parameters = self.parameters();
        let mut effects = (self.entry.effects)(&parameters, context)?;
        let own = |key| crate::macros::look_up(parameters.declared, key).is_some();
        effects.retain(|effect| !own(effect.key) || parameters.differs(effect.key));
        Ok(effects)
    }

    fn parameters(&self) -> KindParameters<'_> {
        let Variant {
            name, parameters, ..
        } = self.entry.variant;
        KindParameters::new(name, parameters, &self.given)
    }
}

/// Names from a list of pairs of a name and a value.
pub const fn names_of<T: Copy, const N: usize>(all: [(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = all[index].0;
        index += 1;
    }
    names
}
