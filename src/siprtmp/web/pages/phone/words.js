/** The page's texts. Another language is one more table; what it lacks is said in English. */
export const TABLES = {
  en: {
    address: "Number or address", answer: "Answer", answerSound: "Answer without picture",
    asking: "Waiting for microphone and camera", back: "Audio and video are connected again.", busy: "you are in a call already", call: "Call",
    callTo: "Call {0}", callWith: "Call with {0}", camera: "Camera", chat: "Message", choose: "The usual one",
    connected: "In a call", decline: "Decline", devices: "Devices", dial: "Whom do you want to call?",
    digits: "Keys to press", ended: "Ended: {0}", enter: "Enter", hangUp: "Hang up",
    held: "They have put you on hold", hold: "Hold", holding: "On hold", incoming: "{0} calls", key: "Key {0}",
    keypad: "Keypad", live: "Streams", login: "Sign in", logout: "Sign out",
    lost: "The connection for audio and video is lost; trying again.", microphone: "Microphone", mute: "Mute",
    name: "Name", nobody: "Nobody else is here.", noWay: "no way to the gateway's port for audio and video", notTransferred: "Not transferred: {0}",
    offline: "The gateway does not answer; trying again.", password: "Password", people: "Signed in now",
    picture: "With picture", play: "Watch", pressed: "They pressed {0}", publishCamera: "Publish camera",
    publishScreen: "Publish screen",
    quality: "{0} kbit/s in, {1} kbit/s out, {2} ms round trip, {3} % lost, {4} ms jitter", refused: "Refused: {0}",
    remote: "Picture of {0}", ringing: "Ringing", room: "Name of the room", rooms: "Rooms", screen: "Share screen",
    self: "Your picture", send: "Send", signedIn: "Signed in as {0}", speaker: "Loudspeaker", stop: "Stop",
    stream: "Name of the stream", theyHungUp: "they hung up", title: "Phone", toCall: "Call", toDevices: "Devices",
    toPeople: "People", toWatch: "Watch", transfer: "Transfer to", transferNow: "Transfer",
    transferred: "Transferred", transferring: "Transferring: {0}",
    welcome: "Sign in to call, to be called, and to watch. Where only this machine reaches the gateway, any name will do, without a password.",
  },
};
