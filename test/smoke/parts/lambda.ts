import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { startPostgres } from 'test-postgres';
import { writeDocumentedCode } from '../documented-code.ts';
import type { SmokePart } from '../smoke-part.ts';
import { StrictApplication } from '../strict-typescript-application.ts';

const DEPENDENCIES = {
  '@codegenie/serverless-express': '5.0.0',
  '@fastify/aws-lambda': '6.4.1',
  '@nestjs/common': '12.5.1',
  '@nestjs/config': '12.0.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  '@nestjs/platform-fastify': '12.5.0',
  '@types/aws-lambda': '8.10.164',
  '@types/express': '5.0.6',
  '@types/pg': '8.23.1',
  '@vendia/serverless-express': '4.12.6',
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  pg: '8.23.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
  'serverless-http': '4.0.0',
};

/** The file of each adapter's function. `express` and `fastify` are in docs/deploying.md, the others in the fixtures. */
const ADAPTERS: Readonly<Record<string, string>> = {
  '@codegenie/serverless-express': 'express',
  'serverless-http': 'serverless-http',
  '@vendia/serverless-express': 'vendia',
  '@fastify/aws-lambda': 'fastify',
};

export const part: SmokePart = {
  description:
    'the documented AWS Lambda functions, with events of API Gateway and a load balancer',
  async run({ payments, root, folder }, checks) {
    const application = await StrictApplication.install(folder, [payments], DEPENDENCIES);
    const sources = join(folder, 'src/lambda');
    await cp(join(root, 'test/smoke/fixtures/lambda'), sources, { recursive: true });
    await writeDocumentedCode(join(root, 'docs/deploying.md'), join(folder, 'src'), (file) =>
      file.startsWith('lambda/'),
    );
    await checks.that('AP-05 the documented functions compile with strict', () =>
      application.compile(),
    );
    const server = await startPostgres();
    try {
      for (const [name, module] of Object.entries(ADAPTERS)) {
        await checks.that(
          `AP-05 ${name}: verifies and stores events, runDue handles them, forged requests get 401, other routes work`,
          async () => {
            await application.run(['dist/lambda/main.js', module], {
              DATABASE_URL: await server.createDatabase(),
              PAYMENTS_BASE_URL: 'https://payments.example.com',
              PAYMENTS_CLIENT_ID: 'client',
              PAYMENTS_CLIENT_SECRET: 'secret',
              PAYMENTS_WEBHOOK_SECRET: 'whsec_R8s0xkq2vT5uY7wZ',
            });
          },
        );
      }
    } finally {
      await server.end();
    }
  },
};
