-- +goose Up

-- What is written to see whether writing works, and removed at once.
CREATE TABLE probes (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    content BYTEA NOT NULL
);
