// Prints the line that counts the tests of a Jest result file. CommonJS without syntax of this decade: it
// runs on the machine's own Node.
const { readFileSync } = require('node:fs');

let result;
try {
  result = JSON.parse(readFileSync(process.argv[2], 'utf8'));
} catch (error) {
  console.log(`no tests were counted: ${error.message}`);
  process.exit(1);
}
// A file that could not run at all holds no test that could have failed.
const failed = result.numFailedTests + result.numRuntimeErrorTestSuites;
const skipped = result.numPendingTests + result.numTodoTests;
const counts = [`${result.numPassedTests} passed`, `${failed} failed`];
if (skipped > 0) counts.push(`${skipped} skipped`);
console.log(counts.join(', '));
if (!result.success) process.exitCode = 1;
