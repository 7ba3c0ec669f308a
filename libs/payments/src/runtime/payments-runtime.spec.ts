import { expect, it } from '@jest/globals';
import { systemRuntime } from './payments-runtime.js';

it('WH-31 systemRuntime.environment is the current value of NODE_ENV', () => {
  const before = process.env['NODE_ENV'];
  try {
    process.env['NODE_ENV'] = 'production';
    expect(systemRuntime.environment).toBe('production');
    delete process.env['NODE_ENV'];
    expect(systemRuntime.environment).toBeUndefined();
  } finally {
    if (before !== undefined) process.env['NODE_ENV'] = before;
  }
});
