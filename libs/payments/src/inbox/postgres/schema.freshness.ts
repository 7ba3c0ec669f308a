/**
 * Marks events that were too old when they were received. `unhandled` says that an event has no delivery; together with
 * `stale` it says why, and such events are counted by the reason.
 */
export const freshness = (schema: string): string => `
ALTER TABLE ${schema}.events ADD COLUMN stale boolean NOT NULL DEFAULT false;

CREATE OR REPLACE FUNCTION ${schema}.tally_unhandled() RETURNS trigger LANGUAGE plpgsql AS $tally$
DECLARE
  v_delta integer := -1;
  v_stale boolean;
BEGIN
  IF TG_OP = 'INSERT' THEN v_stale := NEW.stale; ELSE v_stale := OLD.stale; END IF;
  IF TG_OP <> 'DELETE' THEN v_delta := CASE WHEN NEW.unhandled THEN 1 ELSE -1 END; END IF;
  INSERT INTO ${schema}.tallies (handler, state, delta)
  VALUES ('', CASE WHEN v_stale THEN 'stale' ELSE 'unhandled' END, v_delta);
  RETURN NULL;
END $tally$;
`;
