/** @typedef {import('./api.js').Minute} Minute */

/** Maximum number of points of a plot, so that the plot of a day is readable. */
const POINTS = 100;
/** Possible numbers of minutes per point. Each number divides an hour evenly. */
const SIZES = [1, 5, 15, 30, 60];

/**
 * The number of minutes per point.
 *
 * @param {number} minutes
 */
export function groupSize(minutes) {
  return SIZES.find((size) => minutes / size <= POINTS) ?? 60;
}

/**
 * Groups minutes. Each group starts at a full hour or at an equal part of an hour, for example at 10:00, 10:15 and
 * 10:30. A group has the mean count per minute, and the times of its slowest minute.
 *
 * @param {Minute[]} activity oldest first
 * @returns {Minute[]}
 */
export function grouped(activity) {
  const size = groupSize(activity.length);
  if (size === 1) return activity;
  const groups = Map.groupBy(activity, ({ startsAt }) =>
    Math.floor(Date.parse(startsAt) / 60_000 / size),
  );
  return [...groups].map(([group, minutes]) => {
    /** @param {'received' | 'done' | 'failed' | 'dead'} field */
    const mean = (field) =>
      Number((minutes.reduce((sum, minute) => sum + minute[field], 0) / minutes.length).toFixed(1));
    /** @param {'p50Ms' | 'p95Ms'} field */
    const slowest = (field) => {
      const times = minutes.flatMap((minute) => minute[field] ?? []);
      return times.length > 0 ? Math.max(...times) : null;
    };
    return {
      startsAt: new Date(group * size * 60_000).toISOString(),
      received: mean('received'),
      done: mean('done'),
      failed: mean('failed'),
      dead: mean('dead'),
      p50Ms: slowest('p50Ms'),
      p95Ms: slowest('p95Ms'),
    };
  });
}
