// Publishes a stream to the server `HOST:PORT` and plays it there, by the library in LIBRARY; prints
// what came of it as JSON.  Node.js 20 has WebSocket behind --experimental-websocket.
const [library, server] = process.argv.slice(2);
const { NetConnection } = await import(library);
const told = { events: [], played: [] };
const [ours, theirs] = [new NetConnection(), new NetConnection()];
for (const each of [ours, theirs]) await each.connect(`ws://${server}/live`);
const play = await theirs.createStream(), publish = await ours.createStream();
play.client.onMetaData = (members) => told.events.push(["metadata", members]);
play.onMessage = (type, time, bytes) => {
  if (type !== 18) told.played.push([type, time, bytes.length, bytes[0], bytes.at(-1)]);
  if (told.played.length === 51) publish.close();
};
play.onStatus = ({ code }) => {
  told.events.push(["play", code]);
  if (code === "NetStream.Play.Start") publish.publish("demo");
  if (code !== "NetStream.Play.UnpublishNotify") return;
  console.log(JSON.stringify(told));
  process.exit(0);
};
publish.onStatus = ({ code }) => {
  told.events.push(["publish", code]);
  if (code !== "NetStream.Publish.Start") return;
  publish.sendData("@setDataFrame", "onMetaData", { width: 320 });
  publish.send(9, 0, new Uint8Array(100006).fill(0x17));
  for (let n = 0; n < 50; n++) publish.send(8, 20 * n, new Uint8Array([0xb2, n, 7, 7]));
};
play.play("demo");
