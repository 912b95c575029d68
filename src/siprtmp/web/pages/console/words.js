/** The page's texts. Another language is one more table; what it lacks is said in English. */
export const TABLES = {
  en: {
    about: "About", actOn: "{0}: {1}", actions: "Actions", address: "Address", back: "All calls", between: "{0} to {1}",
    callee: "To", caller: "From", calls: "Calls", chart: "{0} in the last two minutes, from {1} to {2}", codec: "Codecs", contact: "Contact",
    endedBy: "Ended: {0}", expires: "Expires in", forget: "Forget", goes: "Goes to", hangUp: "Hang up", held: "on hold", hold: "Hold",
    howMany: "{0} ({1})", jitterFrom: "Jitter from the phone", jitterTo: "Jitter to the phone", kick: "Disconnect", leave: "Leave it",
    "list-call": "Calls", "list-ended": "Ended lately", "list-login": "Signed in", "list-registration": "Registered phones",
    "list-room": "Rooms", "list-route": "Routes", "list-stream": "Streams", "list-trunk": "Trunks",
    local: "Local operator", logOff: "Log off", login: "Sign in", logout: "Sign out", lostFrom: "Lost from the phone", lostTo: "Lost to the phone",
    match: "Calls to", members: "Members", more: "{0} more are not shown.", mute: "Mute", muted: "muted", name: "Name",
    "no-call": "Nobody is in a call.", "no-ended": "No call has ended since this page was opened.", "no-login": "Nobody is signed in.",
    "no-registration": "No phone is registered.", "no-room": "There are no rooms.", "no-route": "There are no routes.",
    "no-stream": "Nothing is published.", "no-trunk": "There are no trunks.", noEntry: "wrong name or password, or the gateway does not answer",
    noSuchCall: "There is no such call any more.", offline: "The gateway does not answer; trying again.", password: "Password",
    players: "Players", reason: "Reason", received: "Packets received", refused: "Refused: {0}", resume: "Resume",
    running: "Calls: {0}. Streams: {1}.", score: "MOS", scoreFrom: "MOS from the phone", scoreTo: "MOS to the phone", sent: "Packets sent",
    signedIn: "Signed in as {0}", source: "Source", srtp: "SRTP", state: "State", "state-ringing": "Ringing", "state-up": "In a call",
    sure: "{0}: {1}?", time: "Time", title: "Console", toNow: "Now", toPhones: "Phones", toWays: "Rooms and routes", transcoding: "Transcoded",
    trip: "Round trip", trunk: "Trunk", unmute: "Unmute", user: "User", video: "Video", welcome: "Sign in as an operator.", when: "When",
  },
};
