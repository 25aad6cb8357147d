//! The macros that declare settings, and what they are made of.

use crate::datum::Datum;
use crate::error::SettingError;
use crate::setting::Setting;
use crate::value::Value;

/// The setting of that name in a list, for who can do without: the nearest name is not looked for, which takes longer than all else.
pub fn look_up(settings: &'static [Setting], name: &str) -> Option<&'static Setting> {
    settings.iter().find(|setting| setting.name == name)
}

/// The setting of that name in a list.
///
/// # Errors
/// There is none; the nearest name is offered.
pub fn find(settings: &'static [Setting], name: &str) -> Result<&'static Setting, SettingError> {
    look_up(settings, name).ok_or_else(|| SettingError::unknown(name, settings))
}

/// A setting's value from text.
///
/// # Errors
/// The text is not of its kind, or out of its range.
pub fn read<T: Value>(setting: &Setting, text: &str) -> Result<T, SettingError> {
    take(setting, &setting.parse(text)?)
}

/// A setting's value.
///
/// # Errors
/// It is not of the setting's kind, or out of its range.
pub fn take<T: Value>(setting: &Setting, datum: &Datum) -> Result<T, SettingError> {
    let kind = &setting.kind;
    kind.check(datum).map_err(|misfit| setting.error(misfit))?;
    T::from_datum(datum).ok_or_else(|| setting.error(kind.misfit(kind.show(datum))))
}

/// Checks a value against the range of the setting of that name.
///
/// # Errors
/// It does not lie there, or there is no such setting.
#[cold]
#[inline(never)]
pub fn check(settings: &'static [Setting], name: &str, datum: &Datum) -> Result<(), SettingError> {
    let setting = find(settings, name)?;
    let kind = &setting.kind;
    kind.check(datum).map_err(|misfit| setting.error(misfit))
}

/// Declares `Profile`: a field for each switch, the list of them all, and to set and show each by its name.
///
/// A line is the reason as a doc comment, then `name: type, "clause";`, the type one that implements [`Value`], whose kind
/// and range are the switch's. A range of its own follows the type: `rto_initial: Span => TIMEOUT, "...";`. Where a spec has
/// another name for it, that name follows the field's: `initial_cwnd as initial_window: ...`. What it `needs` and what it has no effect
/// with may stand at the end, as in [`settings!`](crate::settings).
#[macro_export]
macro_rules! switches {
    ($($(#[doc = $doc:literal])+ $name:ident $(as $key:ident)? : $type:ty $(=> $kind:expr)?, $clause:literal
        $(, needs $($partner:ident $(= $($word:literal)|+)? $(in $those:ident)?)or+)?
        $(, not with $($rival:ident $(= $($rival_word:literal)|+)? $(in $rival_those:ident)?)or+)?;)+) => {
        /// The switches, each with its clause and reason. Start from [`Profile::by_name`].
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct Profile {
            /// Name of the profile this one started from.
            pub name: &'static str,
            $($(#[doc = $doc])+
                $(#[doc = $crate::settings!(@needs $($partner $(= $($word)|+)? $(in $those)?)or+)])?
                $(#[doc = $crate::settings!(@rivals $($rival $(= $($rival_word)|+)? $(in $rival_those)?)or+)])?
                pub $name: $type,)+
        }

        impl Profile {
            /// Every switch with its clause, its text and what it may be set to.
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

/// Makes an enumeration without fields a value of settings: each variant and how a spec spells it.
#[macro_export]
macro_rules! spelled {
    ($type:ty: $($variant:path = $text:literal),+ $(,)?) => {
        impl $crate::Value for $type {
            const KIND: $crate::Kind = $crate::Kind::Choice(&[$($crate::Choice { name: $text, about: "" }),+]);

            fn from_datum(datum: &$crate::Datum) -> Option<Self> {
                match datum.text()? { $($text => Some($variant),)+ _ => None }
            }

            fn to_datum(&self) -> $crate::Datum {
                $crate::Datum::word(match self { $($variant => $text),+ })
            }

            #[inline]
            fn plainly_fits(&self, kind: &$crate::Kind) -> bool {
                // Each variant has its word in the type's own kind.
                kind.has_words_of(&<Self as $crate::Value>::KIND)
                    || kind.has_word(match self { $($variant => $text),+ })
            }
        }
    };
}

/// Declares a structure whose fields are settings: the fields, their defaults, the list of settings, and to set, show and
/// check each by its name.
///
/// A line is what it does and why as a doc comment, then `field: type = default, kind, "clause";`. Where a spec has another
/// name for it, that name follows: `outbound_streams as streams: ...`. Fields that no spec can set stand in a block
/// `beside`, as `field: type = default;`.
///
/// A setting that has an effect only with another says so behind the clause: `needs rack`, or with one of several, and with some
/// words of one alone: `needs pacing or congestion = "cubic" | "own"`; a flag's word is `true` or `false`, a count's is a number. `congestion in paces_itself`
/// means the words that the function `paces_itself` lists. One that has no effect beside another says `not with cmt`, in the same way, and behind what it needs. Its text and the check of a configuration ([`profiled!`](crate::profiled)) are made from that.
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
            /// Every setting with its text, its kind, its range and its clause.
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
    // To set and show the fields of a structure by the names of their settings.
    (@access $owner:ident, $list:ident, $($field:ident $(as $key:ident)? = $kind:expr;)+) => {
        impl $owner {
            /// The same, with what `change` changes.
            ///
            /// The fields will grow, so that a literal cannot make one elsewhere: begin with a constructor or `Default`.
            #[must_use]
            pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
                change(&mut self);
                self
            }

            /// Checks that every setting lies in its range.
            ///
            /// # Errors
            /// The first that does not: what was found, and what is allowed.
            pub fn check_ranges(&self) -> Result<(), $crate::SettingError> {
                // All are asked, without a branch for each: there is seldom one that does not fit, and this is less code to run through.
                let all_fit = true $(& {
                    // A constant of each, so that most comparisons are with numbers that the compiler knows.
                    const KIND: $crate::Kind = $kind;
                    $crate::Value::plainly_fits(&self.$field, &KIND)
                })+;
                if all_fit {
                    return Ok(());
                }
                self.check_each()
            }

            /// As [`Self::check_ranges`], one after the other.
            #[cold]
            #[inline(never)]
            fn check_each(&self) -> Result<(), $crate::SettingError> {
                $({
                    const KIND: $crate::Kind = $kind;
                    if !$crate::Value::plainly_fits(&self.$field, &KIND) {
                        let datum = $crate::Value::to_datum(&self.$field);
                        let name = $crate::settings!(@key $field $(as $key)?);
                        $crate::check(Self::$list, name, &datum)?;
                    }
                })+
                Ok(())
            }

            /// Sets one by its name from text, as a command line writes it.
            ///
            /// # Errors
            /// The name is unknown (the nearest is offered), or it does not take the value.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), $crate::SettingError> {
                let datum = $crate::find(Self::$list, name)?.parse(text)?;
                self.put(name, &datum)
            }

            /// Sets one by its name from a value that was read.
            ///
            /// # Errors
            /// As [`Self::set`].
            pub fn put(&mut self, name: &str, datum: &$crate::Datum) -> Result<(), $crate::SettingError> {
                let setting = $crate::find(Self::$list, name)?;
                $(if name == $crate::settings!(@key $field $(as $key)?) {
                    self.$field = $crate::take(setting, datum)?;
                })+
                Ok(())
            }

            /// The value of one; `None` if there is none of that name.
            pub fn get(&self, name: &str) -> Option<$crate::Datum> {
                $(if name == $crate::settings!(@key $field $(as $key)?) {
                    return Some($crate::Value::to_datum(&self.$field));
                })+
                None
            }

            /// The value of one as text, as [`Self::set`] reads it.
            pub fn show(&self, name: &str) -> Option<String> {
                let setting = $crate::look_up(Self::$list, name)?;
                Some(setting.kind.show(&self.get(name)?))
            }
        }
    };
    // What a setting needs: as the end of its text, and as a partner.
    (@needs $first:ident $(= $($first_word:literal)|+)? $(in $first_those:ident)?
        $(or $partner:ident $(= $($word:literal)|+)? $(in $those:ident)?)*) => {
        concat!(
            " A value other than the default needs ", $crate::settings!(@need $first $(= $($first_word)|+)? $(in $first_those)?),
            $(" or ", $crate::settings!(@need $partner $(= $($word)|+)? $(in $those)?),)* ".\n"
        )
    };
    // What it has no effect with: as the end of its text.
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
    (@kind $type:ty) => { <$type as $crate::Value>::KIND };
    (@kind $type:ty => $kind:expr) => { $kind };
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident as $key:ident) => { stringify!($key) };
}

/// Joins a configuration, which has a field `profile`, and its profile: their settings and switches in one list.
#[macro_export]
macro_rules! profiled {
    ($config:ident, $profile:ident) => {
        impl $config {
            /// The default configuration under a profile.
            pub fn new(profile: $profile) -> Self {
                Self {
                    profile,
                    ..Self::default()
                }
            }

            /// Every setting: those of the configuration, and the switches of its profile.
            pub fn all_settings() -> Vec<$crate::Setting> {
                [Self::SETTINGS, $profile::SWITCHES].concat()
            }

            /// Sets a setting or a switch by its name.
            ///
            /// # Errors
            /// The name is unknown, or it does not take the value.
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

            /// Checks that each setting that differs from the profile's default has what it needs beside it, and nothing that
            /// takes its effect away.
            ///
            /// # Errors
            /// The first that does not.
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

            /// What a setting or a switch is where it is left out, under the profile of that name.
            pub fn fallback(profile: &str, name: &str) -> Option<String> {
                let config = Self::new($profile::by_name(profile)?);
                config.show(name).or_else(|| config.profile.show(name))
            }
        }
    };
}
