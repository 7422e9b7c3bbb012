-- +goose Up

-- One row for each tenant that ever had data keys: whoever changes them has it first.
CREATE TABLE key_owners (
    tenant TEXT    NOT NULL PRIMARY KEY,
    erased BOOLEAN NOT NULL
);

-- Data keys, encrypted under a master key that is kept elsewhere.
CREATE TABLE data_keys (
    tenant   TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    master   TEXT    NOT NULL, -- its id
    sealed   BLOB    NOT NULL,
    used     INTEGER NOT NULL, -- messages that may have been sealed with it
    created  INTEGER NOT NULL, -- seconds since 1970
    PRIMARY KEY (tenant, version)
);

CREATE TABLE api_keys (
    id      TEXT    NOT NULL PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    rights  TEXT    NOT NULL,
    name    BLOB    NOT NULL,
    created INTEGER NOT NULL, -- seconds since 1970, 0 for never
    expires INTEGER NOT NULL,
    revoked INTEGER NOT NULL,
    hash    BLOB    NOT NULL  -- SHA-256 of the whole key
);
