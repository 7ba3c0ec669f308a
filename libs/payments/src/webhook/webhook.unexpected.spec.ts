import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CapturedLog } from '../../../../test/support/captured.log.js';
import { WebhookEndpoint } from './webhook.endpoint.js';
import { WebhookGuard } from './webhook.guard.js';
import type { WebhookVerifier } from './webhook.verifier.js';

const broken = {
  verify: async () => Promise.reject(new TypeError('what nobody thought of')),
} as unknown as WebhookVerifier;
const request = { method: 'POST', headers: {} };

describe('what nobody thought of', () => {
  let log: CapturedLog;
  beforeEach(() => Logger.overrideLogger((log = new CapturedLog())));
  afterEach(() => Logger.overrideLogger(['error']));

  it('is answered 503 by the endpoint, and logged there alone', async () => {
    const endpoint = new WebhookEndpoint(new HttpAdapterHost(), null!, broken, null!);
    const answer = await endpoint.answer(request);
    expect(answer).toMatchObject({ status: 503, body: { code: 'inbox_unavailable' } });
    expect(JSON.stringify(answer)).not.toContain('nobody thought');
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatch(/^error TypeError: what nobody thought of/);
  });

  it("is left to the application's exception filter by the guard", async () => {
    const http = { getRequest: () => request };
    const context = { switchToHttp: () => http } as unknown as ExecutionContext;
    await expect(new WebhookGuard(broken).canActivate(context)).rejects.toThrow(TypeError);
  });
});
