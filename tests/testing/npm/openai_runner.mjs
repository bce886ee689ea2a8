// The runTools of npm's openai, on Chat Completions: BASE_URL [stream]. Prints the last answer.
import OpenAI from 'openai';

const [baseURL, ...modes] = process.argv.slice(2);
const client = new OpenAI({ apiKey: 'k', baseURL, maxRetries: 0 });
const runner = client.chat.completions.runTools({
  model: 'gpt-5-mini',
  stream: modes.includes('stream'),
  messages: [{ role: 'user', content: 'Weather?' }],
  tools: [
    {
      type: 'function',
      function: {
        name: 'weather',
        description: 'How the weather is.',
        parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        parse: JSON.parse,
        function: ({ city }) => `rain in ${city}`,
      },
    },
  ],
});
console.log(JSON.stringify(await runner.finalContent()));
