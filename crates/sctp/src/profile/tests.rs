use super::*;

#[test]
fn every_switch_of_every_profile_survives_being_shown_and_set() {
    for name in Profile::NAMES {
        let profile = Profile::by_name(name).expect("a listed name");
        assert_eq!(profile.name, *name);
        let mut copy = Profile {
            name: profile.name,
            ..Profile::ns2()
        };
        for switch in Profile::SWITCHES {
            assert!(
                (switch.clause.starts_with("RFC ") || switch.clause.starts_with("ho2008 §"))
                    && !switch.about.is_empty()
                    && !switch.kind.allowed().is_empty()
            );
            let shown = profile.show(switch.name).expect("a listed switch");
            copy.set(switch.name, &shown)
                .expect("what is shown can be set");
        }
        assert_eq!(copy, profile);
    }
}

#[test]
fn a_wrong_switch_offers_the_nearest_and_a_wrong_value_what_is_allowed() {
    let mut profile = Profile::rfc9260();
    let error = profile.set("mising_report", "4").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no setting `mising_report`; did you mean `missing_reports`?"
    );
    let error = profile.set("fast_recovery", "sometimes").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`fast_recovery`: found \"sometimes\"; expected \"none\", \"exit_point\", \"recovery_point\""
    );
    assert!(profile.set("rto_initial", "-1 s").is_err());
    assert!(profile.set("missing_reports", "0").is_err());
    assert_eq!(profile, Profile::rfc9260());
}

#[test]
fn values_read_as_people_write_them() {
    let mut profile = Profile::rfc9260();
    for (text, expected) in [
        ("200 ms", 200_000_000),
        ("1.5 s", 1_500_000_000),
        ("3e0s", 3_000_000_000),
    ] {
        profile.set("rto_initial", text).expect("a time");
        assert_eq!(profile.rto_initial, PositiveTime(expected));
    }
    profile.set("initial_window", "10 segments").expect("units");
    assert_eq!(profile.initial_window, InitialCwnd::Units(10));
    for (switch, bad) in [
        ("rto_initial", "3"),
        ("initial_window", "10"),
        ("initial_window", "1001 segments"),
        ("binomial_k", "0.3"),
        ("binomial_l", "9"),
        ("binomial_alpha", "0"),
        ("binomial_beta", "1.5"),
        ("rsctp_beta", "NaN"),
    ] {
        assert!(profile.set(switch, bad).is_err(), "{switch} = {bad}");
    }
    profile.set("binomial_k", "1").expect("an exponent");
    profile.set("binomial_l", "0").expect("an exponent");
    assert_eq!(profile.binomial_parameters(), BinomialParameters::IIAD);
    assert_eq!(
        Profile::ns2().binomial_parameters(),
        BinomialParameters::SQRT
    );
    assert!(Profile::by_name("rfc793").is_none());
}

#[test]
fn first_windows() {
    assert_eq!(InitialCwnd::Rfc4960.bytes(1448, false), 4380); // 2 x 1448 < 4380 < 4 x 1448
    assert_eq!(InitialCwnd::Rfc9260.bytes(1468, false), 4404);
    assert_eq!(InitialCwnd::Rfc9260.bytes(1448, true), 4344);
    assert_eq!(InitialCwnd::Rfc4960.bytes(9000, false), 18000);
    assert_eq!(InitialCwnd::Rfc4960.bytes(500, false), 2000);
    assert_eq!(InitialCwnd::Units(2).bytes(1448, false), 2896);
}

#[test]
fn a_chunk_counts_by_user_data_chunk_or_padded_chunk() {
    assert_eq!(
        (
            Counts::UserData.bytes(1431),
            Counts::Chunk.bytes(1431),
            Counts::PaddedChunk.bytes(1431)
        ),
        (1431, 1447, 1448)
    );
}
