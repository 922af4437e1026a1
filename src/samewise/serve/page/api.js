// Talking to the service: the token, requests, the stream, and feedback that waits until it is taken.

const TOKEN = "samewise-token";
const OUTBOX = "samewise-outbox";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(TOKEN) ?? "",
  set: (value) => (value ? sessionStorage.setItem(TOKEN, value) : sessionStorage.removeItem(TOKEN)),
};

function headers(more = {}) {
  return token.get() ? { Authorization: `Bearer ${token.get()}`, ...more } : more;
}

export async function request(method, path, body) {
  const options = { method, headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }) };
  if (body !== undefined) options.body = JSON.stringify(body);
  const answer = await fetch(path, options);
  if (!answer.ok) {
    let text = `The service answered with the status ${answer.status}.`;
    try {
      const said = await answer.json();
      const places = (said.places ?? []).map((one) => `${one.where.join(".")}: ${one.what}.`);
      text = [said.error, ...places].join(" ");
    } catch { /* what stood between us and the service answered */ }
    throw new Refused(answer.status, text);
  }
  return answer.json();
}

export const at = (collection, path = "") => `/collections/${encodeURIComponent(collection)}${path}`;

// Server-sent events by fetch, so that the token goes into a header. Reconnects until it is stopped.
export function stream(path, onState, onStatus) {
  const stopper = new AbortController();
  let pause = 250;
  const run = async () => {
    while (!stopper.signal.aborted) {
      try {
        const answer = await fetch(path, { headers: headers(), signal: stopper.signal, cache: "no-store" });
        if (!answer.ok) throw new Refused(answer.status, `status ${answer.status}`);
        onStatus("connected");
        pause = 250;
        await read(answer.body, onState);
      } catch (error) {
        if (stopper.signal.aborted) return;
        if (error instanceof Refused && [401, 403, 404].includes(error.status)) {
          onStatus("refused", error.status);
          return;
        }
      }
      if (stopper.signal.aborted) return;
      onStatus("reconnecting");
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(2 * pause, 4000);
    }
  };
  run();
  return () => stopper.abort();
}

async function read(body, onState) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const data = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data: "));
      rest = rest.slice(end + 2);
      if (data.length) onState(JSON.parse(data.map((line) => line.slice(6)).join("\n")));
    }
  }
}

// Feedback is kept until the service has acknowledged it; its id makes it count once.
function waiting() {
  return JSON.parse(sessionStorage.getItem(OUTBOX) ?? "[]");
}

function keep(list) {
  sessionStorage.setItem(OUTBOX, JSON.stringify(list));
}

export const outbox = {
  size: () => waiting().length,
  sending: null,
  // `again` has the query and the items themselves, for a service that lost the impression in a crash.
  async send(collection, event, again) {
    keep([...waiting(), { collection, event, again }]);
    return outbox.flush(event.event);
  },
  // Sends all that waits, in order; returns the answer to the event named, or null if there is none yet.
  async flush(name) {
    outbox.sending = (outbox.sending ?? Promise.resolve()).then(sendAll);
    await outbox.sending;
    const answer = answers.get(name) ?? null;
    answers.delete(name);
    return answer;
  },
};

// Whoever flushes first may send what others have put there: answers wait for them by name.
const answers = new Map();

async function sendAll() {
  for (const one of waiting()) {
    const name = one.event.event;
    try {
      answers.set(name, await sendOne(one));
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 429 || error.status >= 500) break;
      answers.set(name, { refused: error });
    }
    keep(waiting().filter((other) => other.event.event !== name));
  }
}

async function sendOne({ collection, event, again }) {
  const path = at(collection, "/feedback");
  try {
    return await request("POST", path, { events: [event] });
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404 || !again) throw error;
    const { impression, ...rest } = event;
    return request("POST", path, { events: [{ ...rest, ...again }] });
  }
}
