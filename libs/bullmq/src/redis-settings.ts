import type { Redis } from 'ioredis';
import { reasonOf } from './redis-connection.js';

/** A setting of Redis that can lose events. */
export interface SettingProblem {
  /** Whether the application must not start. Otherwise the problem is only logged. */
  readonly unsafe: boolean;
  /** The setting, its value and the fix. */
  readonly text: string;
}

/** Reads the settings of Redis that decide whether an accepted event can be lost. */
export async function findProblems(client: Redis): Promise<SettingProblem[]> {
  const problems: SettingProblem[] = [];
  try {
    const [aof, policy, fsync, onRewrite] = await Promise.all([
      setting(client, 'appendonly'),
      setting(client, 'maxmemory-policy'),
      setting(client, 'appendfsync'),
      setting(client, 'no-appendfsync-on-rewrite'),
    ]);
    if (aof !== 'yes') {
      const text = `"appendonly" of Redis is "${aof}", so a restart of Redis loses events. Set "appendonly yes".`;
      problems.push({ unsafe: true, text });
    }
    if (policy !== 'noeviction') {
      const text =
        `"maxmemory-policy" of Redis is "${policy}", so Redis deletes events if its memory is full. Set ` +
        '"maxmemory-policy noeviction".';
      problems.push({ unsafe: true, text });
    }
    if (aof === 'yes' && fsync !== 'always') {
      const loss = fsync === 'everysec' ? 'the last second' : 'up to 30 seconds';
      const text =
        `"appendfsync" of Redis is "${fsync}", so a power failure loses the events of ${loss}. Set "appendfsync ` +
        'always" if no event may be lost.';
      problems.push({ unsafe: false, text });
    } else if (aof === 'yes' && onRewrite !== 'no') {
      const text =
        '"no-appendfsync-on-rewrite" of Redis is "yes", so a power failure while Redis rewrites its file loses events. ' +
        'Set "no-appendfsync-on-rewrite no".';
      problems.push({ unsafe: false, text });
    }
  } catch (error) {
    if (client.status !== 'ready') throw error;
    const text =
      `The settings of Redis could not be read with CONFIG GET: ${reasonOf(error)}. Allow this user CONFIG GET. If your ` +
      'provider does not allow it, check that Redis writes an append-only file and that "maxmemory-policy" is ' +
      '"noeviction", and use bullMQ({ setup: \'warn\' }).';
    problems.push({ unsafe: true, text });
  }
  return problems;
}

async function setting(client: Redis, name: string): Promise<string> {
  const [, value] = await client.config('GET', name);
  if (value === undefined) throw new Error(`the server has no setting "${name}"`);
  return value;
}
