/**
 * What an operator is shown of an event beside its state: the headers it came with, how the attempts of its
 * deliveries ended, and what the inbox did minute by minute. Every column may be NULL, for instances of the
 * version before that run on. Deliveries first: that is the order in which claims take the two tables.
 */
export const observations = (schema: string): string => `
ALTER TABLE ${schema}.deliveries
  -- When it was last claimed.
  ADD COLUMN started_at timestamptz,
  -- The attempts that have ended, the oldest first: [attempt, start in ms, ms taken, d(one) f(ailed) l(ost), error].
  ADD COLUMN history jsonb;
-- A JSON object. NULL where none was kept, and once pruned.
ALTER TABLE ${schema}.events ADD COLUMN headers text;

CREATE TABLE ${schema}.activity (
  minute timestamptz PRIMARY KEY,
  received bigint NOT NULL,
  handled bigint NOT NULL,
  failed bigint NOT NULL,
  dead bigint NOT NULL,
  -- How many of those handled fell into each bucket of the histogram.
  handled_within bigint[] NOT NULL
);
-- Whoever may use the tables there were may use this one too: an upgrade needs no administrator.
DO $grants$
DECLARE
  v_grant record;
BEGIN
  FOR v_grant IN
    SELECT a.privilege_type AS privilege,
           CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
      FROM pg_catalog.pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
     WHERE c.oid = '${schema}.deliveries'::regclass
       AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
  LOOP
    EXECUTE format('GRANT %s ON ${schema}.activity TO %s', v_grant.privilege, v_grant.grantee);
  END LOOP;
END $grants$;
`;
