import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import type * as apiErrors from '../../../libs/payments/src/api/api-error.js';

const FACTS = {
  company: 'default',
  method: 'GET',
  path: '/v1/transactions/{id}',
  attempts: 1,
  safe: true,
};
const POST = { ...FACTS, method: 'POST', path: '/v1/payouts', safe: false };
const STATUSES = [400, 403, 404, 409, 418, 429, 503];

/** Example messages of calls that failed, by error code. */
export async function callMessages(root: string): Promise<Map<string, string>> {
  const api = await loadApiErrors(root);
  const broken = {
    kind: 'failure',
    reason: 'connection_failed',
    errno: 'ECONNREFUSED',
    status: undefined,
  } as const;
  const errors = [
    ...STATUSES.map((status) => api.statusError({ ...FACTS, status })),
    api.authenticationError({ ...FACTS, status: 401 }, 'payments.example.com'),
    api.redirectError(
      { ...FACTS, status: 302 },
      'https://other.example.com/',
      'https://payments.example.com/',
    ),
    api.failureError(FACTS, { ...broken, unsent: true }, false),
    api.failureError(FACTS, { ...broken, unsent: true }, true),
    api.failureError(POST, { ...broken, errno: 'ECONNRESET', unsent: false }, false),
    api.failureError(
      FACTS,
      { ...broken, reason: 'response_too_large', status: 200, unsent: false },
      false,
    ),
    api.endedError(FACTS, 'aborted', false),
    api.invalidBodyError({ ...FACTS, status: 200 }),
  ];
  return new Map(errors.map(({ code, message }) => [code, message]));
}

/** Loads the source itself, so that the result does not depend on an earlier build. */
async function loadApiErrors(root: string): Promise<typeof apiErrors> {
  const source = join(root, 'libs/payments/src');
  const base = moduleUrl(join(source, 'errors/payments-error.ts'));
  return import(moduleUrl(join(source, 'api/api-error.ts'), base)) as Promise<typeof apiErrors>;
}

/** The address of a compiled file. `base` is the address of `payments-error.js`, if the file imports it. */
function moduleUrl(file: string, base = ''): string {
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), {
    compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext },
  });
  const code = outputText.replace(/(?<=from ')[^']*payments-error\.js(?=')/, base);
  return `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`;
}
