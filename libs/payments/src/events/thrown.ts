const MAX_LENGTH = 1000;

/**
 * One line about anything a handler may throw: an error, a frozen object, `undefined`, an object whose
 * getters throw. Never throws itself. At most 1,000 characters.
 */
export function describeThrown(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return clip(`${thrown.name}: ${thrown.message}`);
    if (typeof thrown === 'string') return clip(thrown);
    if (typeof thrown === 'object' && thrown !== null) {
      const { message } = thrown as { message?: unknown };
      // Only a message is taken from an object: the rest of it may be a payload.
      return typeof message === 'string' ? clip(message) : 'an object without a message was thrown';
    }
    return `${String(thrown)} was thrown`;
  } catch {
    return 'something that cannot be described was thrown';
  }
}

function clip(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text;
}
