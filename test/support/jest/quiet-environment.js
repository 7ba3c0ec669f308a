import { TestEnvironment } from 'jest-environment-node';

/**
 * Keeps what a test writes to `process.stdout` and `process.stderr`, such as Nest's log, out of the results. If the
 * test fails, the text is printed, because it helps to explain the failure.
 */
export default class QuietEnvironment extends TestEnvironment {
  #written = '';

  constructor(config, context) {
    super(config, context);
    // Tests have a `process` of their own, whose streams are those of Jest.
    const { process } = this.global;
    for (const name of ['stdout', 'stderr']) {
      const quiet = Object.create(process[name]);
      quiet.write = (text, encoding, callback = encoding) => {
        this.#written += String(text);
        if (typeof callback === 'function') callback();
        return true;
      };
      Object.defineProperty(process, name, { value: quiet, configurable: true });
    }
  }

  handleTestEvent({ name, test }) {
    if (name !== 'test_done') return;
    if (test.errors.length > 0 && this.#written !== '') {
      process.stderr.write(`"${test.name}" wrote:\n${this.#written}\n`);
    }
    this.#written = '';
  }
}
