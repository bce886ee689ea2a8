// The tool runner of @anthropic-ai/sdk: BASE_URL [stream] [compact]. Prints what each turn ended with.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

const [baseURL, ...modes] = process.argv.slice(2);
const stream = modes.includes('stream');
const weather = betaTool({
  name: 'weather',
  description: 'How the weather is.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  run: ({ city }) => `rain in ${city}`,
});
const client = new Anthropic({ apiKey: 'k', baseURL, maxRetries: 0 });
const runner = client.beta.messages.toolRunner({
  model: 'claude-sonnet-5-5',
  max_tokens: 99,
  system: 'Be brief.',
  messages: [{ role: 'user', content: 'Weather?' }],
  tools: [weather],
  stream,
});
const turns = [];
for await (const turn of runner) {
  const message = stream ? await turn.finalMessage() : turn;
  const block = message.content.at(-1);
  turns.push([message.stop_reason, block.type, block.text ?? block.content ?? null]);
  if (turns.length === 1 && modes.includes('compact')) runner.compactBeforeNextTurn();
}
console.log(JSON.stringify(turns));
