import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EventRelay, MessageSource } from 'nestjs-payments';
import { ReadmeProgram } from '../support/docs/readme-program.ts';
import { SnsAndSqs } from '../support/engines/sns-and-sqs.ts';
import { describeEngine } from './engine-contract.ts';
import type { EngineAdapter, RunningEngine } from './engine-contract.ts';

/** The adapter of `docs/engines.md`. */
interface Adapter {
  readonly snsRelay: (sns: SnsAndSqs, topic: string) => EventRelay;
  readonly sqsSource: (sqs: SnsAndSqs, url: string, dead: string, batch: number) => MessageSource;
}

describeEngine({
  name: 'the adapter of docs/engines.md (EN-14)',
  installed: true,
  keepsOrder: true,
  async start(): Promise<RunningEngine> {
    const program = new ReadmeProgram('docs/engines.md');
    const url = pathToFileURL(join(program.folder, 'sns-sqs.js')).href;
    const { snsRelay, sqsSource } = (await import(url)) as Adapter;
    const aws = new SnsAndSqs();
    return {
      kill: async () => void (aws.isDown = true),
      restart: async () => void (aws.isDown = false),
      adapter: (name, { service, maxInProgress = 10 } = {}) => {
        // Without a service, the cases only publish; with a service, they only consume.
        if (service === undefined) return snsRelay(aws, name) as EngineAdapter;
        aws.createQueues(name, service);
        const batch = Math.min(10, maxInProgress);
        return sqsSource(
          aws,
          `${name}.${service}`,
          `${name}-dead.${service}`,
          batch,
        ) as EngineAdapter;
      },
      deadLetters: async (name, service) =>
        aws.messages(`${name}-dead.${service}`).map(({ Body, code }) => ({
          code,
          body: code === 'company_unknown' ? Buffer.from(Body) : bodyOf(Body),
        })),
      addForeignMessage: async (name, service, body) =>
        aws.add(`${name}.${service}`, Buffer.from(body).toString(), 'foreign'),
      [Symbol.asyncDispose]: async () => program.remove(),
    };
  },
});

function bodyOf(text: string): Buffer {
  const { data_base64 } = JSON.parse(text) as { data_base64: string };
  return Buffer.from(data_base64, 'base64');
}
