 cake
