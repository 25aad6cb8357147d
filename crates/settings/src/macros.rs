//! Macros that declare settings, and the functions that their code calls.

use crate::datum::Datum;
use crate::error::SettingError;
use crate::setting::Setting;
use crate::value::SettingValue;

/// Finds the setting with this name in a list. This is faster than [`find`], because it does not
/// search for the nearest name.
pub fn look_up(settings: &'static [Setting], name: &str) -> Option<&'static Setting> {
    settings.iter().find(|setting| setting.name == name)
}

/// Finds the setting with this name in a list.
///
/// # Errors
/// There is no such setting; the error contains the nearest name.
pub fn find(settings: &'static [Setting], name: &str) -> Result<&'static Setting, SettingError> {
    look_up(settings, name).ok_or_else(|| SettingError::unknown(name, settings))
}

/// Parses the value of a setting.
///
/// # Errors
/// The text is not of the setting's kind, or is out of its range.
pub fn read<T: SettingValue>(setting: &Setting, text: &str) -> Result<T, SettingError> {
    take(setting, &setting.parse(text)?)
}

/// Converts the value of a setting to a Rust type.
///
/// # Errors
/// The value is not of the setting's kind, or is out of its range.
pub fn take<T: SettingValue>(setting: &Setting, datum: &Datum) -> Result<T, SettingError> {
    let kind = &setting.kind;
    kind.check(datum)
        .map_err(|invalid_value| setting.error(invalid_value))?;
    T::from_datum(datum).ok_or_else(|| setting.error(kind.invalid_value(kind.show(datum))))
}

/// Checks a value against the range of the setting with this name.
///
/// # Errors
/// The value is out of range, or the setting does not exist.
#[cold]
#[inline(never)]
pub fn check(settings: &'static [Setting], name: &str, datum: &Datum) -> Result<(), SettingError> {
    let setting = find(settings, name)?;
    let kind = &setting.kind;
    kind.check(datum)
        .map_err(|invalid_value| setting.error(invalid_value))
}

/// Declares `Profile`: a field for each switch, a list of all switches, and methods that set and
/// show each switch by its name.
///
/// An entry consists of the reason as a doc comment, and `name: type, "clause";`. The type must
/// implement [`SettingValue`], and determines the switch's kind and range. A different range may
/// follow the type: `rto_initial: Span => TIMEOUT, "...";`. If the switch has another name in
/// specs, it follows the name of the field: `initial_cwnd as initial_window: ...`. At the end an
/// entry may declare the settings that the switch `needs`, and those with which it has no effect,
/// as in [`settings!`](crate::settings).
#[macro_export]
macro_rules! switches {
    ($($(#[doc = $doc:literal])+ $name:ident $(as $key:ident)? : $type:ty $(=> $kind:expr)?, $clause:literal
        $(, needs $($partner:ident $(= $($word:literal)|+)? $(in $those:ident)?)or+)?
        $(, not with $($rival:ident $(= $($rival_word:literal)|+)? $(in $rival_those:ident)?)or+)?;)+) => {
        /// Profile: the switches, each with its clause and reason. Start from a named profile with
        /// [`Profile::by_name`].
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Profile {
            /// Name of the profile from which this one was made.
            pub name: &'static str,
            $($(#[doc = $doc])+
                $(#[doc = $crate::settings!(@needs $($partner $(= $($word)|+)? $(in $those)?)or+)])?
                $(#[doc = $crate::settings!(@rivals $($rival $(= $($rival_word)|+)? $(in $rival_those)?)or+)])?
                pub $name: $type,)+
        }

        impl Profile {
            /// All switches, each with its clause, its text and its kind.
            pub const SWITCHES: &'static [$crate::Setting] = &[$($crate::Setting {
                name: $crate::settings!(@key $name $(as $key)?),
                about: concat!($($doc, "\n"),+),
                clause: $clause,
                kind: $crate::settings!(@kind $type $(=> $kind)?),
                fallback: $crate::Fallback::Owner,
                partners: $crate::Partners {
                    needs: &[$($($crate::settings!(@partner $partner $(= $($word)|+)? $(in $those)?)),+)?],
                    rivals: &[$($($crate::settings!(@partner $rival $(= $($rival_word)|+)? $(in $rival_those)?)),+)?],
                },
            }),+];
        }

        $crate::settings!(@access Profile, SWITCHES, $($name $(as $key)? = $crate::settings!(@kind $type $(=> $kind)?);)+);
    };
}

/// Implements [`SettingValue`] for an enumeration without fields. The arguments are its variants,
/// each with its spelling in specs.
#[macro_export]
macro_rules! spelled {
    ($type:ty: $($variant:path = $text:literal),+ $(,)?) => {
        impl $crate::SettingValue for $type {
            const KIND: $crate::Kind = $crate::Kind::Choice(&[$($crate::Choice { name: $text, about: "" }),+]);

            fn from_datum(datum: &$crate::Datum) -> Option<Self> {
                match datum.text()? { $($text => Some($variant),)+ _ => None }
            }

            fn to_datum(&self) -> $crate::Datum {
                $crate::Datum::word(match self { $($variant => $text),+ })
            }

            #[inline]
            fn plainly_fits(&self, kind: &$crate::Kind) -> bool {
                // The kind of the type itself contains a word for each variant.
                kind.has_words_of(&<Self as $crate::SettingValue>::KIND)
                    || kind.has_word(match self { $($variant => $text),+ })
            }
        }
    };
}

/// Declares a structure whose fields are settings, with their defaults, a list of the settings, and
/// methods that set, show and check each by its name.
///
/// An entry consists of the effect and reason as a doc comment, and `field: type = default, kind,
/// "clause";`. If the setting has another name in specs, it follows the name of the field:
/// `outbound_streams as streams: ...`. Fields that specs cannot set are in a block `beside`, in the
/// form `field: type = default;`.
///
/// A setting that has an effect only with another one declares this after the clause: `needs rack`,
/// or several alternatives with allowed words: `needs pacing or congestion = "cubic" | "own"`. The
/// words of a flag are `true` and `false`, and those of a count are numbers. `congestion in
/// paces_itself` permits the words that the function `paces_itself` returns. A setting that has no
/// effect together with another one declares `not with cmt`, in the same form, after its needs.
/// Help texts and the check of a configuration ([`profiled!`](crate::profiled)) are derived from
/// these declarations.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $owner:ident {
            $($(#[doc = $doc:literal])+ $field:ident $(as $key:ident)? : $type:ty = $default:expr, $kind:expr, $clause:literal
                $(, needs $($partner:ident $(= $($word:literal)|+)? $(in $those:ident)?)or+)?
                $(, not with $($rival:ident $(= $($rival_word:literal)|+)? $(in $rival_those:ident)?)or+)?;)+
        }
        beside {
            $($(#[doc = $beside_doc:literal])+ $beside:ident : $beside_type:ty = $beside_default:expr;)*
        }
    ) => {
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $owner {
            $($(#[doc = $beside_doc])+ pub $beside: $beside_type,)*
            $($(#[doc = $doc])+
                $(#[doc = $crate::settings!(@needs $($partner $(= $($word)|+)? $(in $those)?)or+)])?
                $(#[doc = $crate::settings!(@rivals $($rival $(= $($rival_word)|+)? $(in $rival_those)?)or+)])?
                pub $field: $type,)+
        }

        impl Default for $owner {
            fn default() -> Self {
                Self {
                    $($beside: $beside_default,)*
                    $($field: $default,)+
                }
            }
        }

        impl $owner {
            /// All settings, each with its text, its kind, its range and its clause.
            pub const SETTINGS: &'static [$crate::Setting] = &[$($crate::Setting {
                name: $crate::settings!(@key $field $(as $key)?),
                about: concat!($($doc, "\n"),+),
                clause: $clause,
                kind: $kind,
                fallback: $crate::Fallback::Owner,
                partners: $crate::Partners {
                    needs: &[$($($crate::settings!(@partner $partner $(= $($word)|+)? $(in $those)?)),+)?],
                    rivals: &[$($($crate::settings!(@partner $rival $(= $($rival_word)|+)? $(in $rival_those)?)),+)?],
                },
            }),+];
        }

        $crate::settings!(@access $owner, SETTINGS, $($field $(as $key)? = $kind;)+);
    };
    // Methods that set and show the fields of a structure by the names of the settings.
    (@access $owner:ident, $list:ident, $($field:ident $(as $key:ident)? = $kind:expr;)+) => {
        impl $owner {
            /// Applies `change` to the value, and returns it.
            ///
            /// Later versions may add fields, so other crates cannot use a struct literal; they
            /// should start with a constructor or `Default`.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }

            /// Checks the range of every setting.
            ///
            /// # Errors
            /// The first setting that is out of range: its value, and the allowed range.
            pub fn check_ranges(&self) -> Result<(), $crate::SettingError> {
                // All fields are checked without a branch for each. This compiles to less code, and
                // stopping at the first error would rarely save time, because errors are rare.
                let all_fit = true $(& {
                    // Each field has a separate constant, so that the compiler knows the bounds of
                    // most comparisons.
                    const KIND: $crate::Kind = $kind;
                    $crate::SettingValue::plainly_fits(&self.$field, &KIND)
                })+;
                if all_fit {
                    return Ok(());
                }
                self.check_each()
            }

            /// Like [`Self::check_ranges`], but checks one setting after the other to find the
            /// invalid one.
            #[cold]
            #[inline(never)]
            fn check_each(&self) -> Result<(), $crate::SettingError> {
                $({
                    const KIND: $crate::Kind = $kind;
                    if !$crate::SettingValue::plainly_fits(&self.$field, &KIND) {
                        let datum = $crate::SettingValue::to_datum(&self.$field);
                        let name = $crate::settings!(@key $field $(as $key)?);
                        $crate::check(Self::$list, name, &datum)?;
                    }
                })+
                Ok(())
            }

            /// Parses a value as on a command line, and sets the setting `name`.
            ///
            /// # Errors
            /// The name is unknown (the error contains the nearest one), or the setting rejects the
            /// value.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::SettingError> {
                let datum = $crate::find(Self::$list, name)?.parse(text)?;
                self.put(name, &datum)
            }

            /// Sets the setting `name` to a parsed value.
            ///
            /// # Errors
            /// The errors of [`Self::set`].
            pub fn put(&mut self, name: &str, datum: &$crate::Datum) -> Result<(), $crate::SettingError> {
                let setting = $crate::find(Self::$list, name)?;
                $(if name == $crate::settings!(@key $field $(as $key)?) {
                    self.$field = $crate::take(setting, datum)?;
                })+
                Ok(())
            }

            /// Value of the setting `name`; `None` if there is no such setting.
            pub fn get(&self, name: &str) -> Option<$crate::Datum> {
                $(if name == $crate::settings!(@key $field $(as $key)?) {
                    return Some($crate::SettingValue::to_datum(&self.$field));
                })+
                None
            }

            /// Value of a setting as text that [`Self::set`] accepts.
            pub fn show(&self, name: &str) -> Option<String> {
                let setting = $crate::look_up(Self::$list, name)?;
                Some(setting.kind.show(&self.get(name)?))
            }
        }
    };
    // Last sentence of a setting's text, which names the settings that it needs.
    (@needs $first:ident $(= $($first_word:literal)|+)? $(in $first_those:ident)?
        $(or $partner:ident $(= $($word:literal)|+)? $(in $those:ident)?)*) => {
        concat!(
            " A value other than the default needs ", $crate::settings!(@need $first $(= $($first_word)|+)? $(in $first_those)?),
            $(" or ", $crate::settings!(@need $partner $(= $($word)|+)? $(in $those)?),)* ".\n"
        )
    };
    // Last sentence of a setting's text, which names the settings with which it has no effect.
    (@rivals $first:ident $(= $($first_word:literal)|+)? $(in $first_those:ident)?
        $(or $rival:ident $(= $($word:literal)|+)? $(in $those:ident)?)*) => {
        concat!(
            " It has no effect with ", $crate::settings!(@need $first $(= $($first_word)|+)? $(in $first_those)?),
            $(" or ", $crate::settings!(@need $rival $(= $($word)|+)? $(in $those)?),)* ".\n"
        )
    };
    (@need $partner:ident $(= $first:literal $(| $word:literal)*)?) => {
        concat!("`", stringify!($partner), $(" = ", stringify!($first), $("` or `", stringify!($word),)*)? "`")
    };
    (@need $partner:ident in $those:ident) => {
        concat!("`", stringify!($partner), "` in `", stringify!($those), "`")
    };
    (@partner $partner:ident in $those:ident) => {
        $crate::Partner { setting: stringify!($partner), words: $crate::Words::Those($those) }
    };
    (@partner $partner:ident $(= $($word:literal)|+)?) => {
        $crate::Partner {
            setting: stringify!($partner),
            words: $crate::Words::Listed(&[$($(concat!($word)),+)?]),
        }
    };
    (@kind $type:ty) => { <$type as $crate::SettingValue>::KIND };
    (@kind $type:ty => $kind:expr) => { $kind };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident as $key:ident) => { stringify!($key) };
}

/// Combines a configuration, which has a field `profile`, with its profile, so that the settings
/// and switches form one list.
#[macro_export]
macro_rules! profiled {
    ($config:ident, $profile:ident) => {
        impl $config {
            /// Creates the default configuration of a profile.
            pub fn new(profile: $profile) -> Self {
                Self {
                    profile,
                    ..Self::default()
                }
            }

            /// All settings: those of the configuration, and the switches of its profile.
            pub fn all_settings() -> Vec<$crate::Setting> {
                [Self::SETTINGS, $profile::SWITCHES].concat()
            }

            /// Sets a setting or a switch, by its name.
            ///
            /// # Errors
            /// The name is unknown, or the setting rejects the value.
            pub fn assign(
                &mut self,
                name: &str,
                datum: &$crate::Datum,
            ) -> Result<(), $crate::SettingError> {
                if $profile::SWITCHES.iter().any(|switch| switch.name == name) {
                    self.profile.put(name, datum)
                } else {
                    self.put(name, datum)
                }
            }

            /// Checks that each setting that differs from the profile's default has an effect: a
            /// setting that it needs is on, and no setting disables it.
            ///
            /// # Errors
            /// The first setting that has no effect.
            pub fn check_partners(&self) -> Result<(), $crate::SettingError> {
                let profile = $profile::by_name(self.profile.name);
                let fresh = Self::new(profile.unwrap_or_default());
                let of = |config: &Self, name: &str| {
                    config.get(name).or_else(|| config.profile.get(name))
                };
                let [own, default] =
                    [self, &fresh].map(|config| move |name: &str| of(config, name));
                let mut all = Self::SETTINGS.iter().chain($profile::SWITCHES);
                all.try_for_each(|setting| $crate::check_partners(setting, &own, &default))
            }

            /// Default of a setting or a switch in the profile with this name.
            pub fn fallback(profile: &str, name: &str) -> Option<String> {
                let config = Self::new($profile::by_name(profile)?);
                config.show(name).or_else(|| config.profile.show(name))
            }
        }
    };
}
