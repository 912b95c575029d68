// Answers the oracle's questions about RTP: oracle compare rtp -- node rtp.js
const decode = (data) => {
  const first = data.readUInt8(0), second = data.readUInt8(1), csrcs = [];
  let start = 12, extension = null;
  for (let left = first & 15; left > 0; left--, start += 4) csrcs.push(data.readUInt32BE(start));
  if (first & 16) {
    const end = start + 4 + 4 * data.readUInt16BE(start + 2);
    extension = { profile: data.readUInt16BE(start), data: data.toString("hex", start + 4, end) };
    start = end;
  }
  const padding = first & 32 ? data.readUInt8(data.length - 1) : 0, end = data.length - padding;
  if (first >> 6 != 2 || start > end || (first & 32 && !padding)) throw Error("no RTP packet");
  return {
    payload_type: second & 127, marker: second > 127, sequence: data.readUInt16BE(2),
    timestamp: data.readUInt32BE(4), ssrc: data.readUInt32BE(8), csrcs, extension, padding,
    payload: data.toString("hex", start, end),
  };
};

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  try {
    console.log("value", JSON.stringify(decode(Buffer.from(line.slice(7), "hex"))));
  } catch (error) {
    console.log("error", error.message);
  }
});
