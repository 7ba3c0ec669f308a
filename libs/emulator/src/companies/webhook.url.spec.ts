import { describe, expect, it } from '@jest/globals';
import { webhookUrlProblem } from './webhook.url.js';

describe('webhookUrlProblem', () => {
  it.each([
    'https://shop.example/webhooks/payments',
    'https://127.0.0.1:8443/',
    'http://127.0.0.1:3000/webhooks/payments',
    'http://127.9.8.7/',
    'http://localhost:3000/',
    'http://LOCALHOST/',
    'http://shop.localhost/',
    'http://[::1]:3000/',
  ])('takes %s', (url) => {
    expect(webhookUrlProblem(url)).toBeUndefined();
  });

  it.each([
    'http://shop.example/',
    'http://10.0.0.1/',
    'http://localhost.shop.example/',
    'http://127.0.0.1.shop.example/',
    'http://[::2]/',
    'ftp://localhost/',
    'https://user:password@shop.example/',
    '/webhooks/payments',
    '',
    7,
    undefined,
  ])('refuses %s', (url) => {
    expect(webhookUrlProblem(url)).toMatch(/^must /);
  });
});
