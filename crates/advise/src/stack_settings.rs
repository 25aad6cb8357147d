//! Texts for configuring receive buffer and number of streams in various SCTP and TCP stacks.

use crate::question::TunedSetting;

/// A stack with a standard sender: slow start, additive increase, halving.
struct Stack {
    name: &'static str,
    /// Returns the settings for a buffer in bytes: lines of up to 60 characters.
    settings: fn(u64, u16) -> Vec<String>,
}

/// Default window of dcsctp, bytes (`DcSctpOptions`).
const DCSCTP: u64 = 5 << 20;

const STACKS: &[Stack] = &[
    Stack {
        name: "Linux",
        // The kernel doubles SO_RCVBUF and advertises half of the result, which is `buffer`. It
        // does not double sctp_rmem, which must therefore be twice `buffer`.
        settings: |buffer, streams| {
            let twice = 2 * buffer;
            vec![
                format!("SO_RCVBUF = {buffer}, net.core.rmem_max at least that;"),
                format!("or for all: net.sctp.sctp_rmem = \"4096 {twice} {twice}\""),
                format!("sinit_num_ostreams = {streams}; sender: SO_SNDBUF no smaller"),
            ]
        },
    },
    Stack {
        name: "usrsctp",
        settings: |buffer, streams| {
            vec![
                format!("SO_RCVBUF = {buffer}, or sysctl sctp_recvspace = {buffer}"),
                format!("sinit_num_ostreams = {streams}"),
                "sender: sctp_sendspace no smaller".to_owned(),
            ]
        },
    },
    Stack {
        name: "WebRTC",
        settings: |buffer, streams| {
            let enough = match buffer <= DCSCTP {
                true => "the default, 5 MiB, is enough",
                false => "the default, 5 MiB, is less, and no page can change it",
            };
            let channels = match streams {
                1 => "1 data channel".to_owned(),
                _ => format!("{streams} data channels"),
            };
            vec![
                format!("dcsctp: max_receiver_window_buffer_size = {buffer};"),
                format!("{enough};"),
                channels,
            ]
        },
    },
    Stack {
        name: "this stack",
        settings: here,
    },
    Stack {
        name: "TCP, Linux",
        // With tcp_adv_win_scale = 1, the window is half of the buffer.
        settings: |buffer, _| {
            vec![
                "not simulated; the same window:".to_owned(),
                format!(
                    "net.ipv4.tcp_rmem, tcp_wmem: {} as third number",
                    2 * buffer
                ),
            ]
        },
    },
];

/// Name of each stack, with its settings as lines of text.
pub fn of(setting: TunedSetting) -> Vec<(&'static str, Vec<String>)> {
    let Some(buffer) = setting.buffer else {
        return Vec::new();
    };
    let stacks = STACKS.iter();
    stacks
        .map(|stack| (stack.name, (stack.settings)(buffer, setting.streams)))
        .collect()
}

/// Settings for this stack.
pub fn here(buffer: u64, streams: u16) -> Vec<String> {
    vec![
        format!("receive_buffer = \"{buffer} B\", streams = {streams}"),
        format!("anabranch serve sink --set receive_buffer='{buffer} B'"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_holds_twice_what_it_announces() {
        let setting = TunedSetting {
            control: 0,
            streams: 2,
            buffer: Some(65_536),
        };
        let all = of(setting);
        let text = |place: usize| all[place].1.join(" ");
        assert!(text(0).contains("SO_RCVBUF = 65536"), "{}", text(0));
        assert!(text(0).contains("\"4096 131072 131072\""), "{}", text(0));
        assert!(text(2).contains("5 MiB, is enough"), "{}", text(2));
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let setting = TunedSetting {
            control: 0,
            streams: u16::MAX,
            buffer: Some(crate::grid::MAX_BUFFER),
        };
        for (stack, lines) in of(setting) {
            for line in lines {
                assert!(line.chars().count() <= 60, "{stack}: {line}");
            }
        }
    }
}
