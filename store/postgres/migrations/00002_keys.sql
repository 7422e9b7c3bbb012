-- +goose Up

-- One row for each tenant that ever had data keys: whoever changes them has it first.
CREATE TABLE key_owners (
    tenant TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    erased BOOLEAN NOT NULL
);

-- Data keys, encrypted under a master key that is kept elsewhere.
CREATE TABLE data_keys (
    tenant   TEXT COLLATE "C" NOT NULL,
    version  BIGINT  NOT NULL,
    revision BIGINT  NOT NULL,
    master   TEXT COLLATE "C" NOT NULL, -- its id
    sealed   BYTEA   NOT NULL,
    used     BIGINT  NOT NULL, -- messages that may have been sealed with it
    created  BIGINT  NOT NULL, -- seconds since 1970
    PRIMARY KEY (tenant, version)
);

CREATE TABLE api_keys (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    tenant  TEXT COLLATE "C" NOT NULL,
    rights  TEXT COLLATE "C" NOT NULL,
    name    BYTEA   NOT NULL,
    created BIGINT  NOT NULL, -- seconds since 1970, 0 for never
    expires BIGINT  NOT NULL,
    revoked BIGINT  NOT NULL,
    hash    BYTEA   NOT NULL  -- SHA-256 of the whole key
);
