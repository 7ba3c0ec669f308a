#!/usr/bin/env node
import { runCommand } from './command/command.runner.js';

const result = await runCommand(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
if (typeof result === 'number') {
  process.exitCode = result;
} else {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void result.close());
  }
}
