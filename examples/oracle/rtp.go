// Answers the oracle's questions about RTP: go build rtp.go; oracle compare rtp -- ./rtp
package main

import ("bufio"; "encoding/binary"; "encoding/hex"; "encoding/json"; "fmt"; "os")

func decode(line string) {
	defer func() { if problem := recover(); problem != nil { fmt.Println("error", problem) } }()
	data, _ := hex.DecodeString(line)
	u16, u32, csrcs, padding := binary.BigEndian.Uint16, binary.BigEndian.Uint32, []uint32{}, 0
	var extension any
	start := 12 + 4*int(data[0]&15)
	for at := 12; at < start; at += 4 { csrcs = append(csrcs, u32(data[at:])) }
	if data[0]&16 != 0 {
		end := start + 4 + 4*int(u16(data[start+2:]))
		extension = map[string]any{"profile": u16(data[start:]), "data": hex.EncodeToString(data[start+4 : end])}
		start = end
	}
	if data[0]&32 != 0 { padding = int(data[len(data)-1]) }
	if data[0]>>6 != 2 || data[0]&32 != 0 && padding == 0 { panic("no RTP packet") }
	value, _ := json.Marshal(map[string]any{"payload_type": data[1] & 127, "marker": data[1] > 127,
		"sequence": u16(data[2:]), "timestamp": u32(data[4:]), "ssrc": u32(data[8:]), "csrcs": csrcs,
		"extension": extension, "padding": padding, "payload": hex.EncodeToString(data[start : len(data)-padding])})
	fmt.Println("value", string(value))
}

func main() { for in := bufio.NewScanner(os.Stdin); in.Scan(); { decode(in.Text()[7:]) } }
