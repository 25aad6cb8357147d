//! Parsing of numbers on the command line.

use std::any::TypeId;
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Arg;

/// Parses a whole number within bounds, which errors name.
pub fn whole<T: TryFrom<u64>>(
    allowed: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| allowed.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                let (least, most) = (allowed.start(), allowed.end());
                // A number that is too large gets an error about the bounds, not about its sign.
                let is_large = text.bytes().all(|byte| byte.is_ascii_digit());
                match *most {
                    u64::MAX if !is_large => {
                        format!("found {text:?}; write a whole number, {least} or more")
                    }
                    most => format!("found {text:?}; write a whole number, {least} to {most}"),
                }
            })
    }
}

/// Parses a port of a destination, 1 to 65,535.
pub fn port() -> impl Fn(&str) -> Result<u16, String> + Clone + Send + Sync + 'static {
    whole(1..=u16::MAX.into())
}

/// Parses a port to listen on, 0 to 65,535; 0 means any.
pub fn port_or_any() -> impl Fn(&str) -> Result<u16, String> + Clone + Send + Sync + 'static {
    whole(0..=u16::MAX.into())
}

/// Parses a count of at least one.
pub fn count() -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    whole(1..=u32::MAX.into())
}

/// Parses a seed.
pub fn seed() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    whole(0..=u64::MAX)
}

/// Allows values that begin with `-`, so that an error about `-1` names the option and the allowed
/// values. Options that take any text or have an optional value are not changed.
pub fn signed(option: Arg) -> Arg {
    match is_read(&option) {
        true => option.allow_hyphen_values(true),
        false => option,
    }
}

/// Returns true if the option has a value that is parsed, and not free text.
fn is_read(option: &Arg) -> bool {
    let texts = [
        TypeId::of::<String>(),
        TypeId::of::<PathBuf>(),
        TypeId::of::<OsString>(),
    ];
    let value = option.get_value_parser().type_id();
    let needs_one = option.get_num_args().is_none_or(|it| it.min_values() > 0);
    let is_option = !option.is_positional() && option.get_action().takes_values();
    is_option && needs_one && !texts.iter().any(|text| value == *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_bounds() {
        assert_eq!(port()("5001"), Ok(5001));
        assert_eq!(seed()("18446744073709551615"), Ok(u64::MAX));
        for text in ["0", "65536", "-1", "x", "1.5", ""] {
            let error = format!("found {text:?}; write a whole number, 1 to 65535");
            assert_eq!(port()(text), Err(error));
        }
        let error = "found \"-1\"; write a whole number, 0 or more".to_owned();
        assert_eq!(seed()("-1"), Err(error));
    }
}
