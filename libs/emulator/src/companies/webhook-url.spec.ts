import { describe, expect, it } from '@jest/globals';
import { webhookPolicyProblem, webhookUrlProblem } from './webhook-url.js';

const problem = (url: unknown, policy: { publicOnly?: boolean; allowPrivate?: boolean } = {}) =>
  webhookUrlProblem(url) ??
  webhookPolicyProblem(String(url), { publicOnly: false, allowPrivate: false, ...policy });

describe('webhook URL policy of an emulator on a loopback address', () => {
  it.each([
    'https://shop.example/webhooks/payments',
    'https://127.0.0.1:8443/',
    'https://10.0.0.1/',
    'http://127.0.0.1:3000/webhooks/payments',
    'http://127.9.8.7/',
    'http://localhost:3000/',
    'http://LOCALHOST/',
    'http://shop.localhost/',
    'http://[::1]:3000/',
  ])('the webhook URL policy on a loopback address accepts %s', (url) => {
    expect(problem(url)).toBeUndefined();
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
  ])('the webhook URL policy on a loopback address rejects %s', (url) => {
    expect(problem(url)).toMatch(/^must /);
  });
});

describe('SE-14 webhook URL policy of an emulator that other machines can reach', () => {
  it.each(['https://shop.example/webhooks', 'https://8.8.8.8/', 'https://[2606:4700::1111]/'])(
    'SE-14 the webhook URL policy of a reachable emulator accepts %s',
    (url) => {
      expect(problem(url, { publicOnly: true })).toBeUndefined();
    },
  );

  it.each([
    'https://127.0.0.1:8443/',
    'http://127.0.0.1:3000/',
    'https://localhost/',
    'https://shop.localhost/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://10.0.0.1/',
    'https://192.168.0.1/',
    'https://172.20.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://0.0.0.0/',
    'https://[::]/',
    'https://[::1]/',
    'https://[fe80::1]/',
    'https://[fd00::2]/',
    'https://[::ffff:10.0.0.1]/',
  ])('SE-14 the webhook URL policy of a reachable emulator rejects %s', (url) => {
    expect(problem(url, { publicOnly: true })).toMatch(/--allow-private-webhooks/);
  });
});

describe('webhook URL policy with allowPrivateWebhooks', () => {
  it.each([
    'https://shop.example/',
    'http://127.0.0.1:3000/',
    'http://10.0.0.1:3000/',
    'http://shop:3000/',
  ])('the webhook URL policy with allowPrivateWebhooks accepts %s', (url) => {
    expect(problem(url, { allowPrivate: true })).toBeUndefined();
  });

  it('the webhook URL policy with allowPrivateWebhooks rejects http:// for a public address', () => {
    expect(problem('http://8.8.8.8/', { allowPrivate: true })).toMatch(/^must be an https/);
  });
});
