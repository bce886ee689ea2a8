// Reads streams with npm's own clients: cases as JSON on standard input, what they made of them as
// JSON on standard output.

import { HttpAgent } from "@ag-ui/client";
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from "ai";
import * as ai7 from "ai";
import * as ai6 from "ai6";

async function readInput() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

function bodyOf(data) {
  return new Response(Buffer.from(data, "base64"), {
    headers: { "content-type": "text/event-stream" },
  });
}

async function readChat({ data, message, sdk }) {
  const { DefaultChatTransport, readUIMessageStream } = sdk === 6 ? ai6 : ai7;
  const transport = new DefaultChatTransport({});
  const chunks = transport.processResponseStream(bodyOf(data).body);
  let last = message;
  const errors = [];
  const options = { stream: chunks, onError: (error) => errors.push(String(error)) };
  if (message) options.message = message;
  for await (const each of readUIMessageStream(options)) last = each;
  return { message: last, errors };
}

async function readRun({ data, messages, runId, threadId }) {
  const agent = new HttpAgent({
    url: "http://127.0.0.1/ag-ui",
    threadId,
    initialMessages: messages,
    fetch: async () => bodyOf(data),
  });
  const errors = [];
  const outcomes = [];
  const resume = undefined;
  await agent
    .runAgent(
      { runId, resume },
      {
        onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome ?? null),
        onRunErrorEvent: ({ event }) => void errors.push(event.code),
        onRunFailed: ({ error }) => void errors.push(String(error)),
      },
    )
    .catch((error) => errors.push(String(error)));
  return { messages: agent.messages, outcomes, errors };
}

// An agent leaves a stream that broke off to nobody, whose error node would end with.
process.on("unhandledRejection", (error) => {
  if (error?.message !== "network error") throw error;
});
console.error = () => {};

// --- whole chats -------------------------------------------------------------------------------

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) =>
    void (this.messages = this.messages.map((old, at) => (at === index ? this.snapshot(message) : old)));
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor(options) {
    super({ ...options, state: new State() });
  }
}

// A value as text, whatever the order of its keys.
function textOf(value) {
  const sorted = (_, each) =>
    each && typeof each === "object" && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each;
  return JSON.stringify(value, sorted);
}

// The first `length` bytes of a response, which ends then, or breaks off.
function cutBody(bytes, length, isError) {
  let sent = false;
  return new ReadableStream({
    pull(controller) {
      if (!sent && length > 0) controller.enqueue(bytes.subarray(0, length));
      else if (isError) controller.error(new TypeError("network error"));
      else controller.close();
      sent = true;
    },
  });
}

const stream = { headers: { "content-type": "text/event-stream" } };

// What a chat has whose first response is cut, and which comes again for a replay.
async function cutChat(bytes, replay, length, isError, resumes) {
  const chat = new Chat({
    id: "chat 1",
    onError: () => {},
    transport: new DefaultChatTransport({
      fetch: async (url, { method }) =>
        method === "POST"
          ? new Response(cutBody(bytes, length, isError), stream)
          : new Response(replay, stream),
    }),
  });
  await chat.sendMessage({ id: "m0", role: "user", parts: [{ type: "text", text: "Please." }] });
  if (resumes) await chat.resumeStream();
  return textOf(chat.messages);
}

// What an agent has whose first run is cut, and which runs again with nothing new.
async function cutRun(bytes, replay, length, isError, resumes) {
  let count = 0;
  const agent = new HttpAgent({
    url: "http://127.0.0.1/ag-ui",
    threadId: "chat 1",
    initialMessages: [{ id: "m0", role: "user", content: "Please do it." }],
    fetch: async () =>
      count++ === 0
        ? new Response(cutBody(bytes, length, isError), stream)
        : new Response(replay, stream),
  });
  await agent.runAgent({ runId: "r" }).catch(() => {});
  // One that has heard of an open interrupt lacks nothing, and runs no more without an answer.
  const isAsked = (error) => {
    if (!String(error).includes("pending interrupt")) throw error;
  };
  if (resumes) await agent.runAgent({ runId: "r2" }).catch(isAsked);
  return textOf(agent.messages);
}

// Cuts a response behind each `every`th byte, by a clean end and by an error.
async function readCuts({ client, data, replay, every, resumes }) {
  const [bytes, whole] = [Buffer.from(data, "base64"), Buffer.from(replay, "base64")];
  const cut = client === "chat" ? cutChat : cutRun;
  const expected = await cut(bytes, whole, bytes.length, false, resumes);
  const different = [];
  let tried = 0;
  for (let length = 0; length < bytes.length; length += every) {
    for (const isError of [false, true]) {
      tried += 1;
      const found = await cut(bytes, whole, length, isError, resumes);
      if (found !== expected) different.push({ length, isError, found });
    }
  }
  return { tried, expected, count: different.length, first: different[0] ?? null };
}

// A chat and agents against a server: a message, a hold, a second client that comes later, an
// approval, and a third client.
async function talkChat({ url }) {
  const api = `${url}/chat`;
  const headers = { authorization: "ann" };
  const make = (messages) => {
    const chat = new Chat({
      id: "npm/1",
      transport: new DefaultChatTransport({ api, headers }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
    chat.messages = messages;
    return chat;
  };
  const errors = [];
  const [first, second, third] = [make([]), make([]), make([])];
  await second.resumeStream(); // nobody has said anything yet
  errors.push(second.error?.message ?? null);
  await first.sendMessage({ id: "m0", role: "user", parts: [{ type: "text", text: "Please." }] });
  await second.resumeStream();
  const held = JSON.stringify(second.messages);
  const asked = first.lastMessage.parts.find((part) => part.state === "approval-requested");
  await first.addToolApprovalResponse({ id: asked.approval.id, approved: true });
  await until(() => first.status === "ready" && isDone(first.lastMessage));
  // It says the same, a moment too late: the first answer stands.
  const late = second.lastMessage.parts.find((part) => part.state === "approval-requested");
  await second.addToolApprovalResponse({ id: late.approval.id, approved: false });
  await until(() => second.status === "ready" && isDone(second.lastMessage));
  await third.resumeStream();
  const shown = await (await fetch(`${api}/npm%2F1/messages`, { headers })).json();
  await first.sendMessage({ id: "m1", role: "user", parts: [{ type: "text", text: "Again." }] });
  return {
    errors: [...errors, first.error?.message ?? null, second.error?.message ?? null],
    held: JSON.parse(held),
    first: first.messages,
    second: second.messages,
    third: third.messages,
    shown,
  };
}

const isDone = (message) => message.parts.some((part) => part.text === "It is done.");

async function until(condition) {
  for (let count = 0; count < 500 && !condition(); count += 1)
    await new Promise((resolve) => setTimeout(resolve, 20));
  if (!condition()) throw new Error("it never came");
}

async function talkRun({ url }) {
  const make = (messages) =>
    new HttpAgent({
      url: `${url}/ag-ui`,
      threadId: "npm/2",
      headers: { authorization: "ann" },
      initialMessages: messages,
    });
  const outcomes = [];
  const run = (agent, options) =>
    agent.runAgent(options, {
      onRunFinishedEvent: ({ event }) => void outcomes.push(event.outcome),
    });
  const first = make([{ id: "m0", role: "user", content: "Please." }]);
  await run(first, { runId: "r1" });
  const second = make([]);
  await run(second, { runId: "r2" });
  const held = structuredClone(second.messages);
  const [interrupt] = outcomes[0].interrupts;
  const payload = { approved: true, input: { amount: 90 } };
  const resume = [{ interruptId: interrupt.id, status: "resolved", payload }];
  await run(first, { runId: "r3", resume });
  const third = make([]);
  await run(third, { runId: "r4" });
  return { outcomes, held, first: first.messages, third: third.messages };
}

const readers = { chat: readChat, run: readRun, cuts: readCuts, talkChat, talkRun };
const cases = await readInput();
const results = [];
for (const each of cases) results.push(await readers[each.kind](each));
process.stdout.write(JSON.stringify(results));
