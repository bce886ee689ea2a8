// Reads streams with npm's own clients: cases as JSON on standard input, what they made of them as
// JSON on standard output.

import { HttpAgent } from "@ag-ui/client";
import { DefaultChatTransport, readUIMessageStream } from "ai";

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

async function readChat({ data, message }) {
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

const cases = await readInput();
const results = [];
for (const each of cases) results.push(each.kind === "chat" ? await readChat(each) : await readRun(each));
process.stdout.write(JSON.stringify(results));
