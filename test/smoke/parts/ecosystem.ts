import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDocumentedCode } from '../documented-code.ts';
import { LoopbackServices } from '../loopback-services.ts';
import type { SmokePart } from '../smoke-part.ts';
import { StrictApplication } from '../strict-typescript-application.ts';

/** Nest 11 is the newest major that Sentry's package allows. */
const DEPENDENCIES = {
  '@fastify/compress': '9.2.0',
  '@fastify/helmet': '13.2.0',
  '@nestjs/common': '11.2.10',
  '@nestjs/config': '4.0.4',
  '@nestjs/core': '11.2.10',
  '@nestjs/microservices': '11.2.6',
  '@nestjs/platform-express': '11.2.10',
  '@nestjs/platform-fastify': '11.2.8',
  '@nestjs/terminus': '11.1.1',
  '@nestjs/throttler': '6.7.1',
  '@sentry/nestjs': '10.75.3',
  '@types/compression': '1.8.1',
  '@types/express': '5.0.6',
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  compression: '1.8.2',
  fastify: '5.11.3',
  helmet: '8.3.0',
  'nestjs-cls': '6.3.1',
  'nestjs-pino': '5.2.1',
  pino: '10.4.0',
  'pino-http': '11.0.0',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};

const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.tK4vXw0p';
const SECRETS = {
  PAYMENTS_CLIENT_SECRET: 'cs_Vb7kQ2mZ9xT4',
  PAYMENTS_WEBHOOK_SECRET: 'whsec_R8s0xkq2vT5uY7wZ',
  CONSOLE_PASSWORD: 'correct-horse-42',
};
/** Texts that must not appear in the log or the error tracker. */
const FORBIDDEN: Readonly<Record<string, string | RegExp>> = {
  'the access token': TOKEN,
  'the client secret': SECRETS.PAYMENTS_CLIENT_SECRET,
  'the webhook secret': SECRETS.PAYMENTS_WEBHOOK_SECRET,
  'the password of the console': SECRETS.CONSOLE_PASSWORD,
  'the credentials of a client': basic('client', SECRETS.PAYMENTS_CLIENT_SECRET),
  'the credentials of an operator': basic('ops', SECRETS.CONSOLE_PASSWORD),
  'a signature': /\b[\da-f]{128}\b/i,
  'a payload': 'accountReference',
};

export const part: SmokePart = {
  description:
    'helmet, compression, cls, throttler, pino, Sentry, hybrid: webhook requests, console, logs',
  async run({ payments, consolePackage, root, folder }, checks) {
    const packages = [payments, consolePackage];
    const application = await StrictApplication.install(folder, packages, DEPENDENCIES);
    const sources = join(folder, 'src');
    const fixtures = join(root, 'test/smoke/fixtures');
    await cp(join(fixtures, 'ecosystem'), sources, { recursive: true });
    await cp(join(fixtures, 'merchant/report.ts'), join(sources, 'report.ts'));
    await writeDocumentedCode(join(root, 'docs/deploying.md'), sources, (name) =>
      ['main.ts', 'logging.module.ts', 'instrument.ts'].includes(name),
    );
    const compiled = await checks.that(
      'AP-06 docs/deploying.md: the documented code compiles with strict',
      () => application.compile(),
    );
    if (!compiled) return;
    for (const mode of ['documented', 'express', 'fastify']) {
      await using services = await LoopbackServices.start(TOKEN);
      let log = '';
      await checks.that(`AP-06 ${mode}: starts, and exits by itself`, async () => {
        const { output } = await application.run(
          ['--import=./dist/instrument.js', 'dist/check.js', mode],
          { ...SECRETS, PAYMENTS_BASE_URL: services.baseUrl, SENTRY_DSN: services.sentryDsn },
        );
        log = output;
      });
      const lines = log.split('\n');
      for (const line of lines.filter((text) => text.startsWith('{"title"'))) {
        const { title, failure } = JSON.parse(line) as { title: string; failure?: string };
        checks.record(`AP-06 ${mode}: ${title}`, failure);
      }
      await checks.that(`AP-06 ${mode}: no secret, token or signature is in the log`, () => {
        if (!log.includes('"x-webhook-event"')) throw new Error(`no request was logged:\n${log}`);
        assertNoSecret(log);
      });
      if (mode === 'documented') continue;
      await checks.that(`AP-06 ${mode}: Sentry receives the error, and no secret`, () => {
        const sent = services.envelopes.join('\n');
        if (!sent.includes('the order does not exist')) throw new Error(`it received:\n${sent}`);
        assertNoSecret(sent);
      });
    }
  },
};

function basic(user: string, password: string): string {
  return Buffer.from(`${user}:${password}`).toString('base64');
}

function assertNoSecret(text: string): void {
  for (const [name, secret] of Object.entries(FORBIDDEN)) {
    const found = typeof secret === 'string' ? text.indexOf(secret) : text.search(secret);
    if (found >= 0)
      throw new Error(`${name} is in: ${text.slice(Math.max(0, found - 200), found)}…`);
  }
}
