import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CapturedLog } from '../../../../test/support/log/captured-log.js';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { RejectionLog } from './rejection-log.js';
import { WebhookEndpoint } from './webhook-endpoint.js';
import { WebhookGuard } from './webhook.guard.js';
import type { WebhookVerifier } from './webhook-verifier.js';

const broken = {
  verify: async () => Promise.reject(new TypeError('broken verifier')),
} as unknown as WebhookVerifier;
const request = { method: 'POST', headers: {} };

describe('an unexpected error', () => {
  let log: CapturedLog;
  beforeEach(() => Logger.overrideLogger((log = new CapturedLog())));
  afterEach(() => Logger.overrideLogger(['error']));

  it('SE-08 is answered 503 by the endpoint, and logged once per minute', async () => {
    const endpoint = new WebhookEndpoint(
      new HttpAdapterHost(),
      null!,
      broken,
      null!,
      new RejectionLog(new FakeRuntime()),
    );
    const answer = await endpoint.answer(request);
    expect(answer).toMatchObject({ status: 503, body: { code: 'inbox_unavailable' } });
    expect(JSON.stringify(answer)).not.toContain('broken verifier');
    for (let n = 0; n < 100; n += 1) await endpoint.answer(request);
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatch(
      /^error A delivery could not be received: TypeError: broken verifier\n {4}at /,
    );
  });

  it("is left to the application's exception filter by the guard", async () => {
    const http = { getRequest: () => request };
    const context = { switchToHttp: () => http } as unknown as ExecutionContext;
    await expect(new WebhookGuard(broken).canActivate(context)).rejects.toThrow(TypeError);
  });
});
