// Prints the line that counts the tests of Jest result files. CommonJS without syntax of this decade: it
// runs on the machine's own Node.
const { readFileSync } = require('node:fs');

let results;
try {
  results = process.argv.slice(2).map((file) => JSON.parse(readFileSync(file, 'utf8')));
} catch (error) {
  console.log(`no tests were counted: ${error.message}`);
  process.exit(1);
}
const sum = (name) => results.reduce((total, result) => total + result[name], 0);
// A file that could not run at all holds no test that could have failed.
const failed = sum('numFailedTests') + sum('numRuntimeErrorTestSuites');
const skipped = sum('numPendingTests') + sum('numTodoTests');
const counts = [`${sum('numPassedTests')} passed`, `${failed} failed`];
if (skipped > 0) counts.push(`${skipped} skipped`);
console.log(counts.join(', '));
if (!results.every(({ success }) => success)) process.exitCode = 1;
