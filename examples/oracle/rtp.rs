// Answers the oracle's questions about RTP: rustc rtp.rs; oracle compare rtp -- ./rtp
use std::io::BufRead;
fn number(data: &[u8], at: usize, size: usize) -> Option<usize> {
    Some(data.get(at..at + size)?.iter().fold(0, |all, octet| all << 8 | *octet as usize))
}
fn hex(data: &[u8]) -> String { data.iter().map(|octet| format!("{octet:02x}")).collect() }

fn decode(data: &[u8]) -> Option<String> {
    let (first, second) = (number(data, 0, 1)?, number(data, 1, 1)?);
    let (mut start, mut csrcs, mut extension) = (12, vec![], String::from("null"));
    for at in (12..12 + 4 * (first & 15)).step_by(4) { csrcs.push(number(data, at, 4)?); start += 4; }
    if first & 16 > 0 {
        let end = start + 4 + 4 * number(data, start + 2, 2)?;
        extension = format!(r#"{{"profile":{},"data":"{}"}}"#, number(data, start, 2)?, hex(data.get(start + 4..end)?));
        start = end;
    }
    let padding = if first & 32 > 0 { *data.last()? as usize } else { 0 };
    let payload = hex(data.get(start..data.len().checked_sub(padding)?)?);
    if first >> 6 != 2 || (first & 32 > 0 && padding == 0) { return None; }
    Some(format!(r#"{{"payload_type":{},"marker":{},"sequence":{},"timestamp":{},"ssrc":{},"csrcs":{csrcs:?},"extension":{extension},"padding":{padding},"payload":"{payload}"}}"#, second & 127, second > 127, number(data, 2, 2)?, number(data, 4, 4)?, number(data, 8, 4)?))
}

fn main() {
    for line in std::io::stdin().lock().lines().flatten() {
        let octets: Vec<u8> = (7..line.len()).step_by(2).filter_map(|at| u8::from_str_radix(&line[at..at + 2], 16).ok()).collect();
        println!("{}", decode(&octets).map_or(String::from("error no RTP packet"), |value| format!("value {value}")));
    }
}
