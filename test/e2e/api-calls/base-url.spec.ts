import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from '@jest/globals';
import { PaymentsModule } from 'nestjs-payments';

const CREDENTIALS = { clientId: 'i', clientSecret: 's', webhookSecret: 'w' };

/** Boots an application with this base URL. */
async function boot(baseUrl: string): Promise<void> {
  @Module({ imports: [PaymentsModule.forRoot({ ...CREDENTIALS, baseUrl })] })
  class App {}
  const module = await Test.createTestingModule({ imports: [App] }).compile();
  await module.close();
}

describe('the base URL', () => {
  it.each([
    'https://payments.example.com/v1',
    'https://payments.example.com/v1/',
    'https://payments.example.com/V1//',
    'https://gateway.example.com/payments/v1',
  ])(
    'HT-32 the base URL %s is rejected at boot with the advice to remove the /v1',
    async (baseUrl) => {
      const booted = boot(baseUrl);
      await expect(booted).rejects.toMatchObject({ code: 'options_invalid' });
      await expect(booted).rejects.toThrow(
        '"baseUrl" (PAYMENTS_BASE_URL) of company default ends in /v1. Remove the /v1: every path contains it already.',
      );
    },
  );

  it.each([
    'https://payments.example.com',
    'https://payments.example.com/',
    'https://gateway.example.com/v1/payments',
    'https://gateway.example.com/api-v1',
  ])('HT-32 the base URL %s is accepted', async (baseUrl) => {
    await expect(boot(baseUrl)).resolves.toBeUndefined();
  });
});
